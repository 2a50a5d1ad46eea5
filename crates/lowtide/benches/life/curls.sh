#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# curls.sh DIRECTORY URL: one curl for each file, all at once, each of which gives up below 1 kB/s for 15 s. Ends with
# the number that gave up.
set -u
pids=
for file in "$1"/*; do
	curl -sS -f -y 15 -Y 1024 -T "$file" "$2/" &
	pids="$pids $!"
done
failed=0
for pid in $pids; do
	wait "$pid" || failed=$((failed + 1))
done
exit "$failed"
