#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: parallel
# bricktop: timeout 120
#
# Self-test of tests/lib/check_dump.py, the judge of bricktop's request dumps: good
# requests, whose figures were worked out by hand below, must pass, and each kind of
# mistake must be called by its name. A judge that passes everything is worth
# nothing. Needs python3 only.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh

checker=tests/lib/check_dump.py
command -v python3 >/dev/null || skip_all "no python3 here"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# make NAME CODE: writes $dir/NAME from the good request `r`, changed by CODE;
# f(i) is a frame, s(i) a span.
make()
{
	python3 - "$dir/$1" "$2" <<-'PY'
	import json, sys

	def frame(i, stack, parent, xlator, begin, end, raw, own, copy_root=False, on_thread=False):
	    return {"i": i, "stack": stack, "addr": hex(0x1000 + i), "parent": parent,
	            "xlator": xlator, "begin": begin, "end": end, "op": "write",
	            "copy_root": copy_root, "on_thread": on_thread, "begin_raw": raw[0],
	            "end_raw": raw[1], "self": own, "incl": 0 if copy_root else end - begin,
	            "counted": not copy_root}

	def span(frame, begin, end):
	    return {"frame": frame, "layer": "syscall", "sub": "pwrite64", "begin": begin,
	            "end": end, "self": end - begin}

	# fuse was open when walked, so it ends with io-stats; that keeps no begin, so it
	# begins with afr;
	# afr's work lies in a copied stack: client-0 and client-1 in parallel
	# (6000-50000 and 7000-60000: 54000 ns), a post-op on client-1 open at the
	# walk (70000-90000 after clipping): afr has 85000 - 54000 - 20000 = 11000.
	# client-0's child ran on this thread and made a syscall of 10000 ns.
	r = {"schema": "bricktop-request/1", "target": "v:/b", "op": "write", "root": "client",
	     "origin": "user", "thread": 7, "unsplit": "", "watermark": 0,
	     "frames": [
	        frame(0, 0, -1, "fuse", 1000, 95000, (1000, 0), 94000 - 90000),
	        frame(1, 0, 0, "io-stats", 5000, 95000, (0, 95000), 90000 - 85000),
	        frame(2, 0, 1, "afr", 5000, 90000, (5000, 90000), 11000),
	        frame(3, 1, -1, "afr", 5500, 91000, (5500, 0), 0, copy_root=True),
	        frame(4, 1, 3, "client-0", 6000, 50000, (6000, 50000), 44000 - 30000),
	        frame(5, 1, 3, "client-1", 7000, 60000, (7000, 60000), 53000),
	        frame(6, 1, 3, "client-1", 70000, 90000, (70000, 0), 20000),
	        frame(7, 1, 4, "posix", 15000, 45000, (15000, 45000), 20000, on_thread=True)],
	     "spans": [span(7, 20000, 30000), span(-1, 92000, 93000)]}
	f = lambda i: r["frames"][i]
	s = lambda i: r["spans"][i]
	text = None
	exec(sys.argv[2])
	with open(sys.argv[1], "w") as out:
	    out.write(text if text is not None else json.dumps(r) + "\n")
	PY
}

# good NAME CODE [CHECKER OPTION]...: this request must pass.
good()
{
	local name=$1 code=$2

	shift 2
	make dump "$code" || { fail "$name (not made)"; return; }
	ok "passes: $name" "$checker" "$dir/dump" "$@"
}

# bad KIND NAME CODE: exit 1, and the mistake is counted as KIND.
bad()
{
	local kind=$1 name=$2 out rc

	make dump "$3" || { fail "$name (not made)"; return; }
	out=$("$checker" "$dir/dump" 2>&1)
	rc=$?
	if [ "$rc" != 1 ]; then
		fail "caught: $name (exit status $rc)"
		return
	fi
	like "$out" "mismatches:.*(^|[ ,])$kind [1-9]" "caught as '$kind': $name"
}

# unmet NAME OPTIONS CODE: right in every figure, yet an expectation is not met.
unmet()
{
	local name=$1 options=$2 out rc

	make dump "$3"
	# shellcheck disable=SC2086
	out=$("$checker" "$dir/dump" $options 2>&1)
	rc=$?
	like "$rc $out" '^1 .*mismatches: 0.*unmet: ' "unmet: $name"
}

good "copied stack, parallel children, clipping, spans" "" --min-requests 1 \
	--expect-xlator posix --expect-op write --expect-parallel --expect-clipped \
	--expect-spans --expect-copies
good "a child that begins before its parent is clipped" \
	'f(7)["begin_raw"] = 5900; f(7)["begin"] = 6000; f(7)["incl"] = 39000
f(7)["self"] = 29000; f(4)["self"] = 5000' --expect-clipped
good "a child beyond its parent's end is clipped" \
	'f(7)["end_raw"] = 70000; f(7)["end"] = 50000; f(7)["incl"] = 35000
f(7)["self"] = 25000; f(4)["self"] = 9000'
good "a child that begins after its parent's end takes nothing" \
	'f(6)["begin_raw"] = 95000; f(6)["begin"] = f(6)["end"] = 90000; f(6)["incl"] = 0
f(6)["self"] = 0; f(2)["self"] += 20000'
good "frames below the watermark are not counted, others are clipped to it" \
	'r["watermark"] = 65000
for i, (incl, own) in {0: (30000, 0), 1: (30000, 5000), 2: (25000, 5000)}.items():
    f(i)["begin"] = 65000; f(i)["incl"] = incl; f(i)["self"] = own
for i in (4, 5, 7):
    f(i)["counted"] = False; f(i)["self"] = f(i)["incl"] = 0
s(0)["frame"] = -1' --expect-watermark
good "a span of two parts" \
	's(0)["self"] = 7000; s(0)["parts"] = [{"layer": "syscall", "parent": -1, "incl": 10000,
"self": 7000}, {"layer": "xfs", "parent": 0, "incl": 3000, "self": 3000}]' --expect-parts
good "copies shown where they hang" \
	'f(3)["parent"] = 2
for i in (4, 5, 6): f(i)["parent"] = 2'
good "what begins after its parent's end need not be counted, nor what is below" \
	'f(7)["parent"] = 6; f(7)["begin_raw"] = f(6)["begin_raw"] = 95000
f(7)["end_raw"] = 0; s(0)["frame"] = -1
for i in (6, 7): f(i)["counted"] = False
f(4)["self"] = 44000; f(2)["self"] += 20000'
good "a root that ended after its children ends there" \
	'f(0)["end_raw"] = f(0)["end"] = 96000; f(0)["incl"] = 95000; f(0)["self"] = 5000'
effects='for i in range(8): f(i).update(bytes=0, failed=False)
r.update(result=-1, errno=5, stack_error=5, raiser="afr")
s(0)["bytes"] = 4096
for i in (0, 1, 2, 4, 7): f(i)["bytes"] = 4096
for i in (0, 1, 2): f(i)["failed"] = True
'
good "bytes and an error up to the root" "$effects" --expect-failed
good "an error that the root itself raised" "$effects"'r.update(stack_error=2, raiser="")
for i in range(8): f(i)["failed"] = False'
good "an error of nobody known" "$effects"'r["raiser"] = None'
bad bytes "bytes left out above" "$effects"'f(1)["bytes"] = 0'
bad bytes "bytes counted beside the way" "$effects"'f(5)["bytes"] = 4096'
bad failed "an error that went missing on its way" "$effects"'f(1)["failed"] = False'
bad failed "an error below who raised it" "$effects"'f(4)["failed"] = True'
bad failed "an error of another number" "$effects"'r["stack_error"] = 2'
bad failed "the raiser's frame in a copied stack" "$effects"'r["raiser"] = "client-1"
f(5)["failed"] = True'
unmet "no error" "--expect-failed" "$effects"'r["result"] = 0
for i in range(8): f(i)["failed"] = False'

# The post-op that was open at the reply, and the rest of it when it had ended: each
# part once.
later='l = json.loads(json.dumps(r)); l.update(root="background", watermark=90000)
l["frames"] = [dict(f(6), i=0, stack=0, parent=-1, begin=90000, end=99000, end_raw=99000,
                    incl=9000, self=9000)]
l["spans"] = []; p = l["frames"][0]
'
both='text = json.dumps(r) + "\n" + json.dumps(l) + "\n"'
good "a frame that outlives its request, in two parts" "$later$both"
good "its address used again" "$later"'l["watermark"] = 0; p["begin_raw"] = p["begin"] = 95000
p["incl"] = p["self"] = 4000
'"$both"
bad frame-twice "a part that begins before the earlier ended" "$later"'l["watermark"] = 89999
p["begin"] -= 1; p["incl"] += 1; p["self"] += 1
'"$both"
bad frame-twice "a frame counted whole after a part of it" "$later"'l["watermark"] = 0
p["begin"] = 70000; p["incl"] = p["self"] = 29000
'"$both"
bad frame-twice "the same request twice" 'l = r; r["spans"] = []; f(7)["self"] += 10000
'"$both"

good "an unsplit request beside a good one" \
	'u = json.loads(json.dumps(r)); u["unsplit"] = "frames"; u["frames"] = u["frames"][:2]
text = json.dumps(r) + "\n" + json.dumps(u) + "\n"' --max-unsplit 1

bad self "a self time off by one nanosecond" 'f(2)["self"] += 1'
bad sum "a sum that does not close" 'f(5)["self"] -= 1'
bad top "parts that do not make the whole" 'f(7)["self"] += 5'
bad incl "an inclusive time off by one nanosecond" 'f(5)["incl"] += 1'
bad self "parallel children added, not united" 'f(2)["self"] = 85000 - 44000 - 53000 - 20000'
bad self "a copied stack not followed" 'f(2)["self"] = 85000'
bad self "a span not subtracted" 'f(7)["self"] = 30000'
bad begin "a begin that is not the earliest child's" 'f(1)["begin"] = 1000'
bad end "an open frame not clipped" 'f(6)["end"] = 100000'
bad end "the root ends before its children" \
	'f(0)["end"] = 94000; f(0)["incl"] = 93000; f(0)["self"] = 3000'
bad end "an open root ends after its children" \
	'f(0)["end"] = 96000; f(0)["incl"] = 95000; f(0)["self"] = 5000'
bad end "a child beyond its parent left as it is" 'f(7)["end_raw"] = f(7)["end"] = 70000'
bad negative "an end before its begin" 'f(5)["end_raw"] = 6500'
bad negative "a span that ends before it begins" 's(1)["end"] = 91000; s(1)["self"] = -1000'
bad parent "a parent that is not there" 'f(7)["parent"] = 99'
bad parent "a parent in another stack that was not copied" \
	'r["frames"].append(frame(8, 2, 2, "x", 6000, 7000, (6000, 7000), 1000))'
bad parent "a frame that is its own ancestor" 'f(4)["parent"] = 7'
bad parent "two tops" 'f(1)["parent"] = -1'
bad graft "a copy hung on the wrong frame" 'f(5)["parent"] = 1'
bad graft "a copy's root hung on the wrong frame" 'f(3)["parent"] = 0'
bad graft "a copy of no frame known" 'f(3)["xlator"] = "ec"'
bad graft "a copy that began before what it copies" 'f(3)["begin_raw"] = 4000'
bad counted "a copy's root counted" 'f(3)["counted"] = True'
bad counted "a frame left out" 'f(5)["counted"] = False'
bad counted "a frame below the watermark counted" \
	'r["watermark"] = 65000; s(0)["frame"] = -1'
joined='r["spans"].append(dict(span(5, 8000, 58000), layer="aio", sub="aio read",
	joined=f(5)["addr"])); f(5)["self"] = 3000
'
good "an operation that a frame of another thread waited for" "$joined" --expect-joined
bad span-frame "one that does not lie in that frame's time" "$joined"'s(2)["end"] = 61000
s(2)["self"] += 3000; f(5)["self"] = 1000'
bad span-frame "one that another frame waited for" "$joined"'s(2)["joined"] = f(4)["addr"]'
unmet "no operation was joined" --expect-joined ""
bad span-frame "a span given to a frame of another thread" 's(1)["frame"] = 0'
bad span-frame "a span given to nobody" 's(0)["frame"] = -1'
bad span-self "a span's self time" 's(0)["self"] = 9999'
bad span-self "a part's time left in the span around it" \
	's(0)["parts"] = [{"layer": "syscall", "parent": -1, "incl": 10000, "self": 10000},
{"layer": "xfs", "parent": 0, "incl": 3000, "self": 3000}]'
part='{"layer": "xfs", "sub": "x", "parent": 0, "incl": 3000, "self": 3000}'
outer='{"layer": "syscall", "parent": -1, "incl": 10000, "self": 7000}'
bad span-part "a part that is there twice" \
	's(0)["self"] = 4000; s(0)["parts"] = [{"layer": "syscall", "parent": -1, "incl": 10000,
"self": 4000}, '"$part, $part]"
bad span-part "a part inside a later one" \
	's(0)["self"] = 7000; s(0)["parts"] = ['"$outer, ${part/0,/2,}, ${part/x\"/y\"}]"
bad span-part "a part that no other encloses" \
	's(0)["self"] = 7000; s(0)["parts"] = ['"$outer, $part, "'
{"layer": "block", "parent": -1, "incl": 5, "self": 5}]'
bad span-part "a negative self time" \
	's(0)["self"] = -1; s(0)["parts"] = [{"layer": "syscall", "parent": -1, "incl": 10000,
"self": -1}, {"layer": "xfs", "parent": 0, "incl": 10001, "self": 10001}]'
bad format "not JSON" 'text = "{\n"'
bad format "another schema" 'r["schema"] = "bricktop-request/2"'
bad format "a missing stamp" 'del f(2)["begin_raw"]'
bad format "a stamp that is no whole number" 'f(2)["begin_raw"] = 5000.0'
bad format "two frames of the same number" 'f(5)["i"] = 4'
bad begin "nothing tells the begin" \
	'r["frames"] = [f(0)]; r["spans"] = []; f(0)["begin_raw"] = 0'

unmet "too few requests" "--min-requests 2" ""
unmet "an xlator that does not appear" "--expect-xlator locks" ""
unmet "an op that does not appear" "--expect-op read" ""
unmet "no parallel children" "--expect-parallel" \
	'f(5)["begin_raw"] = f(5)["begin"] = 50000; f(5)["incl"] = f(5)["self"] = 10000'
unmet "nothing clipped" "--expect-clipped" \
	'f(6)["end_raw"] = f(6)["end"] = 80000; f(6)["incl"] = f(6)["self"] = 10000
f(2)["self"] = 21000'
unmet "no span placed" "--expect-spans" \
	'r["spans"] = []; f(7)["self"] = 30000'
unmet "no watermark" "--expect-watermark" ""
unmet "too many unsplit requests" "--max-unsplit 0" \
	'u = json.loads(json.dumps(r)); u["unsplit"] = "ledger"
text = json.dumps(r) + "\n" + json.dumps(u) + "\n"'

# The frame of posix is one that dg was entered with at 15100, twice, and posix at 17000:
# dg has 2000 ns of it, posix 28000 less the span's 10000. A mark of the frame's earlier
# use is older than its begin.
split='f(7).update(xlator="dg", self=2000, tail=False)
r["frames"].append(frame(8, 1, 7, "posix", 17000, 45000, (17000, 45000), 18000,
                         on_thread=True))
f(8).update(addr=f(7)["addr"], tail=True)
s(0)["frame"] = 8
mark = lambda xlator, time: {"xlator": xlator, "time": time}
r["marks"] = [{"frame": 7, "this": "posix", "made": 4, "kept": [
    mark("posix", 9000), mark("dg", 15100), mark("dg", 15200), mark("posix", 17000)]}]
k = r["marks"][0]["kept"]
'
# the same frame, left whole
whole=$split'r["frames"].pop(); f(7).update(xlator="posix", self=20000); s(0)["frame"] = 7
'
good "a frame split by its entries" "$split" --expect-tails --expect-xlator dg
good "a frame that nothing entered is remembered of" \
	"$whole"'r["marks"][0].update(made=1, kept=k[:1])'
good "marks that do not lead to where the frame ended" "$whole"'r["marks"][0]["this"] = "locks"
f(7)["xlator"] = "locks"'
good "marks that may lack the first: eight were made since" \
	"$whole"'r["marks"][0].update(made=9, kept=[mark("posix", 16000 + i) for i in range(8)])'
bad tail "a frame left whole that could be split" "$whole"
bad tail "a part in the wrong order" "$split"'k[3]["time"] = 15050'
bad tail "a part that begins at another time" \
	"$split"'f(8)["begin_raw"] = f(8)["begin"] = 17001; f(8)["incl"] = 27999
f(8)["self"] = 17999; f(7)["self"] = 2001'
bad tail "a part that ends at another time" "$split"'f(8)["end_raw"] = 44000
f(8)["end"] = 44000; f(8)["incl"] = 27000; f(8)["self"] = 17000; f(7)["self"] = 3000'
bad tail "a part at another address" "$split"'f(8)["addr"] = "0x1"'
bad tail "a frame split without a mark" "$split"'r["marks"] = []'
bad tail "a part of another use of the frame" "$split"'k[1]["time"] = k[2]["time"] = 14000'
bad tail "a part of no frame" "$split"'f(8)["parent"] = 99'
bad tail "a child hung on a part that had not begun" \
	"$split"'r["frames"].append(frame(9, 1, 8, "x", 15500, 16000, (15500, 16000), 500))'
bad self "a part's time left in the one above" "$split"'f(7)["self"] = 30000'
bad format "a mark without its time" "$split"'del k[0]["time"]'
unmet "no frame split" "--expect-tails" ""

: >"$dir/empty"
nok "no request at all fails" "$checker" "$dir/empty"
make dump 'r["unsplit"] = "ledger"'
nok "a dump of unsplit requests alone fails" "$checker" "$dir/dump"
nok "a missing file fails" "$checker" "$dir/none"
done_testing
