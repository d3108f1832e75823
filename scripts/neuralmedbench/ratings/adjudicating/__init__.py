"""Where raters disagree a further one decides: the queue, the packet, and the key by which its export is known."""
