"""What exists because processes die, disks fill and two runs meet; everything else may ignore this room, but for `run_command`."""
