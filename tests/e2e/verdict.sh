#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 400
#
# Verdicts: bricks and processes that are slow for one known reason each, and some that
# are not (tests/lib/causes_*.sh). How slow, where and under which load is drawn from
# BRICKTOP_SEED, so that thresholds which only fit one case are found. A case may be
# unsure, but must never be wrong and confident; with the seed fixed here, which is none
# that thresholds were chosen with, it must be right. tests/soak/verdict.sh draws the seed,
# makes VERDICT_ROUNDS rounds (1) of all cases, and each case VERDICT_REPEATS times (1).
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
. tests/lib/causes.sh
. tests/lib/causes_brick.sh
. tests/lib/causes_process.sh
e2e_begin
bed_xlators || skip_all "test xlators cannot be built here"

seed=${BRICKTOP_SEED:-20261130}
all='xlator pool cpu held lock log throttle device queue libaio io_uring healthy few'
read -ra cases <<<"${VERDICT_CASES:-$all}"
scores=$BED_DIR/scores
diag "BRICKTOP_SEED=$seed"

# sure_and_wrong BED: of what stands behind the first cause, what is sure and not true.
sure_and_wrong()
{
	measure_get "$1" '.verdict[1:][] | select(.confidence == "high") |
		"\(.cause) \(.subject)"' | grep -Ev -e "$WANTED" ${ALSO:+-e "$ALSO"}
}

# names_also BED: where a further cause has to be named, it is.
names_also()
{
	[ -z "$ALSO" ] ||
		measure_get "$1" '.verdict[1:][] | "\(.cause) \(.subject)"' | grep -Eq -e "$ALSO"
}

# judge CASE BED: right, unsure (not right, but not sure) or wrong, of the first cause; wrong,
# too, where any other is sure and not true.
judge()
{
	local case=$1 got confidence shown result=wrong

	got=$(measure_get "$2" '.verdict[0] | "\(.cause) \(.subject)"')
	confidence=$(measure_get "$2" '.verdict[0].confidence')
	shown=$(measure_get "$2" '[.verdict[] |
		"\(.cause) \(.subject) \(.share_pct) \(.confidence)"] | join("; ")')
	if [[ $got =~ $WANTED ]] && names_also "$2"; then
		result=right
	elif [[ $got =~ $WANTED ]] || [ "$confidence" != high ]; then
		result=unsure
	fi
	! sure_and_wrong "$2" >/dev/null || result=wrong
	echo "$case ${got%% *} $confidence $result" \
		"$(measure_get "$2" '[.verdict[].share_pct // 0] | "\(.[0]) \(.[1] // 0)"')" \
		>>"$scores"
	diag "$result: $case ($CASE): $shown"
	isnt "$result" wrong "$case: not wrong with high confidence ($CASE)" ||
		diag "$(jq '.verdict' "$BED_DIR/$2.json")"
	ok "$case: each thread once, a brick's pool of io-threads among them" jq -e '
		([.threads[].tid] | unique | length) == (.threads | length) and
		(.target.kind != "brick" or any(.threads[];
			.pool == "io-threads" and .oncpu_pct > 0))' "$BED_DIR/$2.json"
	[ -n "${BRICKTOP_SEED-}" ] || is "$result" right "$case: the right cause"
}

# run CASE ROUND REPEAT: the same round's draw is the same each time.
run()
{
	local bed=${1//_/-}$2-$3

	cause_seed "$seed $2 $1"
	ALSO=
	ok "$1: measured" "cause_$1" "$bed" && judge "$1" "$bed"
	cause_end "$bed"
}

# share_of RESULT...: of all verdicts those with one of these, in per cent.
share_of()
{
	awk -v wanted=" $* " 'index(wanted, " " $4 " ") || index(wanted, " " $4 "-" $3 " ") {
		n++ } END { print int(100 * n / NR) }' "$scores"
}

# Rows: cases; columns: what was named first, how often; of the right ones, how many were
# sure; the lowest share and the least distance to what came next among them, in points.
confusion()
{
	awk '{ cases[$1]; named[$2]; n[$1, $2]++ }
	$4 == "right" {
		right[$1]++
		high[$1] += $3 == "high"
		if (!($1 in share) || $5 < share[$1]) share[$1] = $5
		if (!($1 in apart) || $5 - $6 < apart[$1]) apart[$1] = $5 - $6
	}
	END {
		printf "%-16s", "case"
		for (what in named) printf " %s", what
		print " | right sure share apart"
		for (name in cases) {
			printf "%-16s", name
			for (what in named)
				printf " %*s", length(what), n[name, what] ? n[name, what] : "."
			printf " | %5d %4d %4d%% %5d\n", right[name], high[name], share[name],
				apart[name]
		}
	}' "$scores"
}

# without such cgroups the machine has to be idle
cause_first || diag "no CPU shares here"
for ((round = 1; round <= ${VERDICT_ROUNDS:-1}; round++)); do
	for case in "${cases[@]}"; do
		for ((repeat = 1; repeat <= ${VERDICT_REPEATS:-1}; repeat++)); do
			run "$case" "$round" "$repeat"
		done
	done
done
while IFS= read -r line; do
	diag "$line"
done < <(confusion)
if [ -n "${BRICKTOP_SEED-}" ]; then
	between "$(share_of right)" 90 100 "most are right"
	between "$(share_of right-high right-medium)" 75 100 "and most of all are sure"
fi
done_testing
