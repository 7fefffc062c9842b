#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 600
# shellcheck disable=SC2317 # functions are called through others
#
# doctor says the truth: what it calls off is off in a report too, and what works is
# on; the reasons are those that this kernel gives elsewhere (its configuration, its
# lockdown); with fewer rights it names those that are missing, never guesses at
# memory limits, never crashes, and leaves nothing in the kernel.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

dir=$(mktemp -d) || exit 1
bed_on_exit rm -rf "$dir"
chmod 755 "$dir"
install -m 755 "$BRICKTOP" "$dir/bricktop" # other users may not see ours

# doctor NAME COMMAND...: as JSON and as text, run through COMMAND; sets status.
doctor()
{
	local name=$1 text

	shift
	(cd / && "$@" timeout 100 "$dir/bricktop" doctor --json) \
		>"$dir/$name.json" 2>"$dir/$name.err" </dev/null
	status=$?
	(cd / && "$@" timeout 100 "$dir/bricktop" doctor) >"$dir/$name.txt" 2>>"$dir/$name.err"
	is $? "$status" "$name: text and JSON end alike"
	is "$(cat "$dir/$name.err")" '' "$name: nothing on stderr"
	is "$(jq -r .schema "$dir/$name.json")" bricktop/1 "$name: the schema"
	text=$(cat "$dir/$name.txt")
	unlike "$text" 'ulimit|memlock' "$name: nothing about memory limits"
	is "$(awk 'length > 100' "$dir/$name.txt")" '' "$name: no line too long"
	is "$(jq -r "$rows | select((.state == \"works\") != (.reason == \"\")) | .id" \
		"$dir/$name.json")" '' "$name: a reason where, and only where, it does not work"
	is "$(jq -r "$rows | select(.state != \"works\" and .lost == \"\") | .id" \
		"$dir/$name.json")" '' "$name: what is lost by it"
	is "$(jq -r "$rows | select(.state == \"off\") | .id" "$dir/$name.json" |
		while read -r id; do grep -qF -- "$id" <<<"$text" || echo "$id"; done)" '' \
		"$name: the text names all that is off"
}
rows='.layers[], .programs[], .features[], .capabilities[], .hooks[]'

# row NAME SECTION ID FIELD
row() { jq -r --arg id "$3" ".$2[] | select(.id == \$id) | .$4" "$dir/$1.json"; }
verdict() { jq -r .verdict "$dir/$1.json"; }
off_of() { jq -r '.layers[] | select(.state == "off") | .id' "$dir/$1.json" | sort; }

# agrees NAME COMMAND...: an investigation, made with the same rights.
agrees()
{
	local name=$1 titles

	shift
	(cd / && "$@" timeout 100 "$dir/bricktop" attach "$(bed_get b1 PID)" --json -d 1) \
		>"$dir/report" 2>"$dir/attach.err" </dev/null
	titles=$(jq -r '.layers[].id' "$dir/$name.json")
	# below a walk that is off the rows are not listed one by one
	if [ "$(row "$name" layers walk state)" = off ]; then
		like "$(jq -r '.off[].what' "$dir/report")" '(^|[[:space:]])walk($|[[:space:]])' \
			"$name: attach says so too of the walk"
		return
	fi
	is "$(jq -r '.off[].what' "$dir/report" | grep -xF "$titles" | sort)" \
		"$(off_of "$name")" "$name: off in a report is what doctor calls off"
}

# lockdown: as securityfs says, read in a way of our own.
lockdown()
{
	unshare -m sh -c 'mount -t securityfs none /sys/kernel/security 2>/dev/null
		cat /sys/kernel/security/lockdown 2>/dev/null' | sed -n 's/.*\[\(.*\)\].*/\1/p'
}

has_config() # NAME: 1 it is set; 2 nobody knows
{
	local file

	for file in /proc/config.gz "/boot/config-$(uname -r)"; do
		[ -r "$file" ] || continue
		zgrep -qE "^CONFIG_$1=[ym]" "$file"
		return
	done
	return 2
}

# tracepoints: what the kernel and its modules have, as sections of programs.
tracepoints()
{
	local file

	for file in /sys/kernel/btf/*; do
		bpftool -B /sys/kernel/btf/vmlinux btf dump file "$file" 2>/dev/null
	done | sed -n "s,.*TYPEDEF 'btf_trace_\([^']*\)'.*,tp_btf/\1,p"
}

test_root()
{
	local id

	doctor root env
	like "$status" '^[01]$' 'root: something works'
	is "$status" "$([ "$(verdict root)" = all ] && echo 0 || echo 1)" \
		'root: the exit status is the verdict'
	is "$(jq -r .lockdown "$dir/root.json")" "$(lockdown | grep . || echo null)" \
		'root: the state of lockdown'
	is "$(jq -r .kernel "$dir/root.json")" "$(uname -r)" 'root: the kernel'
	while read -r id; do
		like "$(row root layers "$id" state)" '^(works|off)$' "root: the layer $id"
	done < <(sed -n 's/^LAYER(//p' user/layers.def | cut -d '"' -f 2)
	for id in bpf_loop 'attach cookies' 'task storage' 'reading memory'; do
		is "$(row root features "$id" state)" works "root: $id" # or the walk would not
	done
	is "$(jq -r '.hooks[] | select(.state == "works") | .id' "$dir/root.json" |
		grep '^tp_btf/' | sort -u)" \
		"$(jq -r '.hooks[].id' "$dir/root.json" | grep '^tp_btf/' | sort -u |
			grep -xF "$(tracepoints)")" 'root: tracepoints are those that the BTF has'
	agrees root env
	is "$(bpftool prog show | grep -cE ' (on_hook__|on_place__|on_task|use_)')" 0 \
		'root: nothing stays in the kernel'
}

# What this kernel cannot do, by what it says elsewhere.
test_reasons()
{
	if has_config KPROBES; then
		unlike "$(row root programs kprobe reason)" 'CONFIG_KPROBES ' 'kprobes are set'
	else
		is "$(row root programs kprobe state)" off 'no kprobes in this kernel'
		like "$(row root programs kprobe reason)" 'CONFIG_KPROBES .*not set' \
			'as the configuration says'
	fi
	if [ "$(row root programs fentry state)" = works ]; then
		is "$(row root programs fentry reason)" '' 'fentry works'
	elif [ "$(lockdown)" = none ] || [ -z "$(lockdown)" ]; then
		unlike "$(row root programs fentry reason)" 'locked' 'fentry: not for lockdown'
	else
		like "$(row root programs fentry reason)" "locked down \($(lockdown)\)" \
			'fentry: for lockdown'
	fi
	is "$(row root programs fentry optional)" true 'which bricktop does without'
}

test_nobody()
{
	doctor nobody setpriv --reuid=65534 --regid=65534 --clear-groups
	is "$status" 77 'nobody: nothing works'
	is "$(verdict nobody)" nothing 'nobody: and it says so'
	like "$(row nobody layers memory reason)" 'CAP_SYS_PTRACE .*root' 'nobody: memory'
	like "$(row nobody layers walk reason)" 'CAP_BPF and CAP_PERFMON .*root' 'nobody: walk'
	is "$(row nobody programs tp_btf state)" unknown 'nobody: what cannot be tried is unknown'
	like "$(tail -n 1 "$dir/nobody.txt")" 'root' 'nobody: says who could know'
	if has_config KPROBES; then
		is "$(row nobody programs kprobe state)" unknown 'nobody: kprobes'
	else
		is "$(row nobody programs kprobe state)" off 'nobody: what nobody has is off'
	fi
	is "$(jq -r '[.hooks[].state] | unique | join(" ")' "$dir/nobody.json")" \
		"$(jq -r '[.hooks[] | if .state == "works" then "unknown" else .state end] |
			unique | join(" ")' "$dir/root.json")" 'nobody: hooks are looked up'
}

# caps NAME SET: root, with that bounding set.
caps() { doctor "$1" setpriv --bounding-set "$2"; }

test_caps()
{
	caps no-bpf -bpf,-perfmon,-sys_admin
	is "$status" 1 'without CAP_BPF: some works'
	is "$(row no-bpf layers memory state)" works 'without CAP_BPF: memory'
	like "$(row no-bpf layers walk reason)" \
		'CAP_BPF and CAP_PERFMON are missing: taken from this container' \
		'without CAP_BPF: and why the walk does not'
	agrees no-bpf setpriv --bounding-set -bpf,-perfmon,-sys_admin

	caps no-ptrace -sys_ptrace
	is "$(row no-ptrace layers memory state)" off 'without CAP_SYS_PTRACE: no memory'
	like "$(row no-ptrace layers memory reason)" 'CAP_SYS_PTRACE' 'and why'
	is "$(row no-ptrace layers walk state)" off 'nor a walk'

	caps least -all,+bpf,+perfmon,+sys_ptrace
	is "$(row least layers walk state)" works 'three capabilities: the walk'
	is "$(row least features 'BPF statistics' state)" unknown 'but not what it costs'
	agrees least setpriv --bounding-set -all,+bpf,+perfmon,+sys_ptrace
}

test_output()
{
	"$BRICKTOP" doctor >&- 2>"$dir/err"
	is $? 1 'stdout closed: status'
	like "$(cat "$dir/err")" '^bricktop: .*output' 'stdout closed: says so'
	"$BRICKTOP" doctor surplus >"$dir/out" 2>"$dir/err"
	is $? 2 'a word too many: usage'
}

bed_brick b1 || bail_out 'no brick'
test_root
test_reasons
test_nobody
test_caps
test_output
done_testing
