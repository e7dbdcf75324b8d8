#!/bin/sh
# Checks total.sh. Run it with: sh test.sh
cd "$(dirname "$0")" || exit 1
. ./total.sh

failed=0

# check NAME WANT PRICES...
check() {
	name=$1 want=$2
	shift 2
	got=$(total "$@")
	if [ "$got" = "$want" ]; then
		echo "ok    $name"
	else
		echo "FAIL  $name: got $got, want $want"
		failed=1
	fi
}

check "an empty basket" 0
check "a small basket" 45 20 25
check "more than 100" 180 150 50
check "100 to the cent" 90 60 40

exit $failed
