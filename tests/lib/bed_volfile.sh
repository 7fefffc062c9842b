# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bed_volfile.sh: writes the volfiles of the test beds: the xlator graphs and
# nothing else. Names follow what glusterd generates: volume V gives V-posix,
# V-locks, ..., V-server; a brick's io-stats is named by the brick path, a
# client's by the volume. Sourced by bed.sh, whose variables it reads.

# vol_xlator NAME TYPE SUBVOLUMES [OPTION VALUE]...: one block of a volfile.
vol_xlator()
{
	local name=$1 type=$2 below=$3

	shift 3
	printf 'volume %s\n    type %s\n' "$name" "$type"
	while [ $# -ge 2 ]; do
		printf '    option %s %s\n' "$1" "$2"
		shift 2
	done
	[ -z "$below" ] || printf '    subvolumes %s\n' "$below"
	printf 'end-volume\n\n'
}

# VOL_TOP is the xlator that the next one goes on top of.
VOL_TOP=

vol_push()
{
	local name=$1 type=$2

	shift 2
	vol_xlator "$name" "$type" "$VOL_TOP" "$@"
	VOL_TOP=$name
}

# vol_extra PREFIX HEIGHT: pushes those of VOL_AT that belong at this height. The
# type `delay` is our own xlator.
vol_extra()
{
	local spec height name type

	for spec in "${VOL_AT[@]}"; do
		read -r height name type spec <<<"$spec"
		[ "$height" = "$2" ] || continue
		[ "$type" != delay ] || type=$(bed_xlator_type) || return 1
		# shellcheck disable=SC2086
		vol_push "$1-$name" "$type" $spec
	done
}

vol_pass()
{
	local prefix=$1 count=${2%%:*} type i

	[ "$count" -gt 0 ] || return 0
	type=${2#*:}
	[ "$type" != "$2" ] || type=$(bed_xlator_type) || return 1
	for ((i = 1; i <= count; i++)); do
		vol_push "$prefix-pass$i" "$type"
	done
}

# bed_xlators: where our own xlators are, built: BED_XLATORS if given, else they are
# built here, in about a second.
bed_xlators()
{
	if [ -z "${BED_XLATORS-}" ]; then
		"$BED_LIB/build-xlator.sh" "$BED_DIR/xlators" >&2 || return 1
		BED_XLATORS=$BED_DIR/xlators
	fi
	BED_XLATORS=$(realpath "$BED_XLATORS")
}

# bed_xlator_type [NAME]: the type line that loads our own xlator. The loader puts
# the type behind its xlator folder and adds .so, so a path that climbs up from there
# reaches any file.
bed_xlator_type()
{
	bed_xlators || return 1
	printf '../../../../../../..%s' "$BED_XLATORS/${1:-delay}"
}

# bed_brick_volfile NAME [OPTION]...: see bed_brick. Sets _VOLUME; it must not run
# in a subshell for that, hence its output is redirected, not captured.
bed_brick_volfile()
{
	local name=$1 volume=$BED_VOLUME threads=16 pass=0 path opt posix=() VOL_AT=()

	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--volume) volume=$2; shift ;;
		--io-threads) threads=$2; shift ;;
		--linux-aio) posix+=(linux-aio on) ;;
		--posix) read -ra opt <<<"$2"; posix+=("${opt[@]}"); shift ;;
		--at) VOL_AT+=("$2 $3"); shift 2 ;;
		--pass) pass=$2; shift ;;
		--async) ;;
		*) bed_say "unknown brick option '$1'"; return 1 ;;
		esac
		shift
	done
	path=$(bed_get "$name" PATH)
	bed_set "$name" VOLUME "$volume"
	VOL_TOP=
	vol_push "$volume-posix" storage/posix directory "$path" "${posix[@]}"
	vol_extra "$volume" posix || return 1
	vol_push "$volume-access-control" features/access-control
	vol_push "$volume-locks" features/locks
	vol_push "$volume-upcall" features/upcall
	vol_extra "$volume" iot || return 1
	vol_pass "$volume" "$pass" || return 1
	vol_push "$volume-io-threads" performance/io-threads thread-count "$threads"
	vol_extra "$volume" top || return 1
	vol_push "$path" debug/io-stats unique-id "$path" log-level WARNING
	vol_push "$volume-server" protocol/server transport-type tcp \
		transport.socket.bind-address "$BED_ADDR" \
		transport.socket.listen-port "$(bed_get "$name" PORT)" \
		"auth.addr.$path.allow" '127.*' "auth-path" "$path"
}

# vol_cluster KIND VOLUME [OPTION VALUE]...: what joins the bricks' clients, whose
# names are in VOL_TOP; the options are replicate's or disperse's.
vol_cluster()
{
	local kind=$1 volume=$2

	shift 2
	case $kind in
	replicate) vol_push "$volume-replicate-0" cluster/replicate "$@" ;;
	disperse) vol_push "$volume-disperse-0" cluster/disperse redundancy 1 "$@" ;;
	esac
	vol_push "$volume-dht" cluster/distribute
	[ "$kind" != write-behind ] || vol_push "$volume-write-behind" performance/write-behind
}

# bed_client_volfile NAME [OPTION]... BRICK...: see bed_client. Sets _BRICKS and
# _VOLUME, so it must not run in a subshell either.
bed_client_volfile()
{
	local name=$1 kind=plain without=' ' bricks=() brick volume i=0 below='' opt VOL_AT=()
	local cluster=()

	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--kind) kind=$2; shift ;;
		--cluster) read -ra opt <<<"$2"; cluster+=("${opt[@]}"); shift ;;
		--direct-io) ;;
		--without) without+="$2 "; shift ;;
		--at) VOL_AT+=("$2 $3"); shift 2 ;;
		-*) bed_say "unknown client option '$1'"; return 1 ;;
		*) bricks+=("$1") ;;
		esac
		shift
	done
	[ ${#bricks[@]} -gt 0 ] || { bed_say "$name: a client needs a brick"; return 1; }
	case $kind in
	plain | write-behind | replicate | disperse) ;;
	*) bed_say "unknown kind of client '$kind'"; return 1 ;;
	esac
	volume=$(bed_get "${bricks[0]}" VOLUME)
	bed_set "$name" BRICKS "${bricks[*]}"
	bed_set "$name" VOLUME "$volume"
	for brick in "${bricks[@]}"; do
		vol_xlator "$volume-client-$i" protocol/client '' remote-host "$BED_ADDR" \
			remote-port "$(bed_get "$brick" PORT)" transport-type tcp \
			remote-subvolume "$(bed_get "$brick" PATH)" ping-timeout 0
		below+="$volume-client-$i "
		i=$((i + 1))
	done
	VOL_TOP=${below% }
	vol_cluster "$kind" "$volume" "${cluster[@]}"
	[[ $without == *" io-threads "* ]] || vol_push "$volume-io-threads" performance/io-threads
	vol_extra "$volume" top || return 1
	[[ $without == *" io-stats "* ]] || vol_push "$volume" debug/io-stats log-level WARNING
}

# bed_stacks_volfile NAME [OPTION VALUE]...: see bed_stacks. Six frames a request:
# the maker in the server's place, io-stats, three pass-through xlators, the bottom.
bed_stacks_volfile()
{
	local name=$1 volume=$BED_VOLUME path i

	shift
	path=$(bed_get "$name" PATH)
	bed_set "$name" VOLUME "$volume"
	VOL_TOP=
	# a volfile's bottom must have an option
	vol_push "$volume-posix" "$(bed_xlator_type bottom)" threads 0
	for i in 1 2 3; do
		vol_push "$volume-pass$i" "$(bed_xlator_type)"
	done
	vol_push "$path" debug/io-stats unique-id "$path" log-level WARNING
	vol_push "$volume-server" protocol/server "$@"
}
