"""Serve a GGUF file with llama.cpp, from the package xllamacpp; arguments have the names of `llama-server`.

The engine `llamacpp` runs this file as a program of its own.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence

PACKAGE = "xllamacpp"


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", required=True, help="GGUF file with the weights")
    parser.add_argument("--alias", required=True, help="name under which they are served")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mmproj", default="", help="GGUF file with the part that sees")
    parser.add_argument("--ctx-size", type=int, default=0, help="tokens of one request; 0: those of the model")
    parser.add_argument("--parallel", type=int, default=1, help="requests at a time, each with its own context")
    parser.add_argument("--threads", type=int, default=-1, help="threads; -1: one a core")
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--ubatch-size", type=int, default=512)
    parser.add_argument("--n-gpu-layers", type=int, default=-1, help="layers on the GPU; -1: all")
    parser.add_argument("--image-min-tokens", type=int, default=-1)
    parser.add_argument("--image-max-tokens", type=int, default=-1)
    parser.add_argument("--chat-template-file", type=argparse.FileType(encoding="utf-8"))
    args = parser.parse_args(argv)
    if args.parallel > 1 and not args.ctx_size:
        parser.error("--parallel above 1 needs --ctx-size")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    # threads that wait busily take ten times as long where jobs share the cores
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from xllamacpp import CommonParams, Server

    settings = CommonParams()
    settings.model.path, settings.model_alias = args.model, {args.alias}
    settings.hostnames, settings.port = [args.host], args.port
    settings.mmproj.path = args.mmproj
    # a part of its own for each request: what else is asked changes no answer
    settings.n_parallel, settings.kv_unified = args.parallel, False
    settings.n_ctx = args.parallel * args.ctx_size
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = args.threads
    settings.n_batch, settings.n_ubatch = args.batch_size, args.ubatch_size
    settings.n_gpu_layers = args.n_gpu_layers
    settings.image_min_tokens = args.image_min_tokens
    settings.image_max_tokens = args.image_max_tokens
    if args.chat_template_file:
        settings.chat_template = args.chat_template_file.read()
    # nothing is downloaded, and no page of a browser reads what is asked
    settings.offline, settings.ui, settings.endpoint_slots = True, False, False
    settings.cors_origins = f"http://{args.host}"
    server = Server(settings)
    print(f"listening at {server.listening_address}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    raise SystemExit(main())
