#!/bin/sh
# What became of a submission: running until its exit code is there.
if [ ! -f "$1/code" ]; then
    echo running
elif [ "$(cat "$1/code")" = 0 ]; then
    echo success
else
    echo failed
fi
