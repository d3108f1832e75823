#!/bin/sh
# A cluster without a cluster: notes what is asked for, runs the job script in the background, prints where its exit code will stand.
set -eu
folder=$(mktemp -d "$STAND_IN/submission-XXXXXXXX")
cp "$4" "$folder/script"
echo "$1 $2 $3" > "$folder/asked"
if [ -z "${STAND_IN_REFUSES:-}" ]; then
    (code=0; sh "$folder/script" || code=$?; echo "$code" > "$folder/code.new"; mv "$folder/code.new" "$folder/code") > "$folder/log" 2>&1 &
else
    echo 1 > "$folder/code"
fi
echo "$folder"
