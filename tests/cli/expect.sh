# SPDX-License-Identifier: Apache-2.0
# Expectations of a command's output, for the tests beside: they set `what`, and have the output in $dir/out and $dir/err. A test exits with $bad.
# shellcheck shell=sh disable=SC2034,SC2154 # the test that reads this file sets and uses them
bad=0

fail() {
    echo "$what: $1"
    sed 's/^/    /' "$dir/out" "$dir/err"
    bad=1
}

# out LINE, err LINE: exactly this line was printed.  says FILE TEXT: a line with this text.  no TEXT: nowhere.
out() { grep -qxF -- "$1" "$dir/out" || fail "no line \"$1\""; }
err() { grep -qxF -- "$1" "$dir/err" || fail "no diagnostic \"$1\""; }
says() { grep -qF -- "$2" "$dir/$1" || fail "no line with \"$2\""; }
no() { ! grep -qF -- "$1" "$dir/out" "$dir/err" || fail "\"$1\" was printed"; }

# lines FILE N: so many lines.  silent FILE: none.
lines() { [ "$(wc -l <"$dir/$1")" -eq "$2" ] || fail "not $2 lines on std$1"; }
silent() { [ ! -s "$dir/$1" ] || fail "something on std$1"; }
