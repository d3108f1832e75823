"""Tell whether a vision-language model can reason like a neurologist, or only classifies."""

import sys

NOT_ON_WINDOWS = "neuralmedbench runs on Linux and macOS; on Windows, use it within WSL 2 (https://learn.microsoft.com/windows/wsl/install)"

if sys.platform == "win32":
    raise SystemExit(NOT_ON_WINDOWS)
