#!/bin/bash
# Runs acceptance tests on real systems, for make:
#
#	run.sh core            all that no shard has
#	run.sh match <regexp>  those whose names match, from wherever they are
#	run.sh <shard>         a shard of the file shards, a race-…, or fuzz
#	run.sh bench <name>    a benchmark, or all of them; nothing is repeated
#	run.sh all             each shard in turn
#	run.sh changed <base>  the shards of what has changed since a commit
#
# A failed test is repeated once, in another process with a new lab; if it passes then, the run ends with a line
# FLAKE <test> <tier> <commit>. Nothing is repeated after a data race, or if more than three tests have failed; and whatever is repeated,
# all tests of the tier must have passed (see cmd/verdict).
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=internal/lab/suite
tests=$here/shards

fail() { echo "run.sh: $*" >&2; exit 1; }

# The table: the names, a shard's package, and its patterns; long are those of all shards, but for the lab's own tests.
names() { awk '$1 == "shard" { print $2 }' $tests; }
package_of() { awk -v shard="$1" '$1 == "shard" && $2 == shard { print "./internal/" $4 }' $tests; }
patterns() { awk -v shard="$1" '$1 == "shard" { on = $2 == shard } on && NF == 1 { print $1 }' $tests | paste -sd '|'; }
long() { awk '$1 == "shard" { on = $4 !~ /^lab/ } on && NF == 1 { print $1 }' $tests | paste -sd '|'; }
shards_after() { awk -v package="$1" '$1 == "shard" { for (i = 6; i <= NF; i++) if (index(package "/", $i "/") == 1) print $2 }' $tests; }
all_shards() { names; printf '%s\n' race-disk race-virtualmachine race-volumebinding race-volumecontent race-others fuzz; }

# The packages of the core, the longest first: the shorter ones run beside them.
core_packages() {
	printf './internal/resource/%s\n' volumebinding virtualmachine disk volumecontent
	find internal -name '*_acc_test.go' -not -path 'internal/lab/*' -not -path 'internal/resource/*' -printf './%h\n' | sort -u
}

# run_tests <tier> <packages> <flags of go test…>
run_tests() {
	local tier=$1 packages=$2 code=0
	shift 2
	# Tests are short-lived processes with Terraform and providers below them: less garbage collection saves a tenth of the processors.
	GOGC=400 GOMEMLIMIT=1GiB $GOTESTSUM --format testname --hide-summary skipped --jsonfile "$TMPDIR/tests.json" \
		--rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--packages="$(echo $packages)" -- -tags acc -count=1 -vet=off -timeout 45m "$@" || code=$?
	echo "The longest tests:"
	$GOTESTSUM tool slowest --num 20 --jsonfile "$TMPDIR/tests.json"
	go run ./$here/cmd/verdict "$tier" "$(git rev-parse --short HEAD)" <"$TMPDIR/tests.json" || code=1
	return $code
}

fuzz() {
	local package target
	go test -list '^Fuzz' ./... >"$TMPDIR/list"
	grep -q '^Fuzz' "$TMPDIR/list" || fail "there is nothing to fuzz"
	awk '/^Fuzz/ { targets[++n] = $1 } /^ok/ { for (; n; n--) print $2, targets[n] }' "$TMPDIR/list" |
		while read -r package target; do
			echo "fuzzing $target of $package"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1s "$package" </dev/null
		done
}

# Tests of the core with the race detector, in the test process and in the provider that Terraform runs, whose output it doesn't show.
race() {
	local packages=./internal/resource/$1 code=0
	if [ "$1" = others ]; then
		packages=$(core_packages | grep -v /resource/)
		go test -race ./...
	fi
	go build -race -o .lab/race/terraform-provider-virtclaim .
	VIRTCLAIM_TEST_PROVIDER=$PWD/.lab/race GORACE="halt_on_error=1 atexit_sleep_ms=0 log_path=$TMPDIR/race" \
		run_tests "race-$1" "$packages" -race -run '^TestAcc' -skip "^($(long))" || code=$?
	if compgen -G "$TMPDIR/race.*" >/dev/null; then
		cat "$TMPDIR"/race.*
		code=1
	fi
	return $code
}

# The packages that have a test whose name matches, up to a subtest's.
packages_with() {
	local names file
	names=$(sed 's#/[^|]*##g' <<<"$1")
	find internal -name '*_acc_test.go' | while read -r file; do
		sed -n 's/^func \(TestAcc[A-Za-z0-9_]*\)(.*/\1/p' "$file" | grep -qE -- "$names" && echo "./${file%/*}"
	done | sort -u
}

# bench <name>, or all without one; capitals don't matter.
bench() {
	local name=${1:-.*} packages
	packages=$(grep -rliE --include='*_acc_test.go' "^func Benchmark($name)\(" internal | xargs -r dirname | sed 's#^#./#' | sort -u) || true
	[ -n "$packages" ] || fail "there is no benchmark $name; the benchmarks are:" \
		$(grep -rhoP --include='*_acc_test.go' '^func Benchmark\K\w+' internal | tr '[:upper:]' '[:lower:]')
	go test -tags acc -count=1 -vet=off -timeout 45m -run '^$' -bench "(?i)^Benchmark($name)\$" -benchtime 1x $packages
}

run() {
	case $1 in
	core) run_tests core "$(core_packages)" -p 3 -run '^TestAcc' -skip "^($(long))" ;;
	match)
		local packages
		packages=$(packages_with "$2") || true
		[ -n "$packages" ] || fail "no test of real systems has a name that matches $2; make test-unit runs the others"
		run_tests match "$packages" -run "$2"
		;;
	bench) bench "${2-}" ;;
	race-*) race "${1#race-}" ;;
	fuzz) fuzz ;;
	*)
		[ -n "$(package_of "$1")" ] || fail "there is no shard $1; the shards are:" $(all_shards)
		run_tests "$1" "$(package_of "$1")" -run "^($(patterns "$1"))"
		;;
	esac
}

# changed lists the shards of the packages that differ from a commit: all of them if no shard names the package.
changed() {
	local path shards
	{
		git diff --no-renames --name-only "$1" -- '*.go' go.mod go.sum internal
		git ls-files --others --exclude-standard -- '*.go' internal
	} | while read -r path; do
		case $path in
		internal/*) path=${path#internal/} ;;
		*) path=- ;;
		esac
		shards=$(shards_after "${path%/*}")
		[ -n "$shards" ] && echo "$shards" || names
	done | sort -u
}

TMPDIR=$(mktemp -d "$PWD/.lab/tmp-XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

case ${1-} in
all) shards=$(all_shards) ;;
changed)
	git rev-parse --quiet --verify "${2-}^{commit}" >/dev/null || fail "there is no commit ${2:-without a name}: give BASE=<commit>"
	shards=$(changed "$2")
	[ -n "$shards" ] || echo "Nothing has changed since $2 that a shard tests."
	;;
*)
	run "$@"
	exit
	;;
esac
failed=()
for shard in $shards; do
	echo "### $shard"
	started=$SECONDS
	$here/run.sh "$shard" || failed+=("$shard") # in a process of its own, which ends at the first error
	echo "### $shard took $((SECONDS - started)) s"
done
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}"
