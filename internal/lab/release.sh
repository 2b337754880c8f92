#!/bin/bash
# Builds the release of a version as the workflow "release" does, but for a key of its own and nothing published, and tries it:
#
#	release.sh <version>
#
# HEAD is built from a clean clone, all of it again in another folder, and this machine's program a third time without anything that
# was compiled before: the bytes must be the same. Then the demos run with the archive, as terraform init finds it.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1
name=terraform-provider-virtclaim
image=ghcr.io/virtclaim/virtclaim-volume
platforms="darwin_amd64 darwin_arm64 freebsd_amd64 freebsd_arm64 linux_386 linux_amd64 linux_arm linux_arm64 windows_amd64 windows_arm64"
bin=$PWD/.lab/bin

say() { echo "release-check: $*"; }
fail() { say "$*" >&2; exit 1; }

export PATH=$bin:$PATH

# gpg's agent listens below this folder, and a socket's path is short.
GNUPGHOME=$(mktemp -d /tmp/release-XXXXXX)
export GNUPGHOME
trap 'gpgconf --kill gpg-agent; rm -rf "$GNUPGHOME"' EXIT
gpg --batch --quiet --passphrase "" --quick-generate-key "release-check <nobody@example.org>" rsa4096 sign never
GPG_FINGERPRINT=$(gpg --batch --with-colons --list-keys | awk -F: '$1 == "fpr" { print $10; exit }')
export GPG_FINGERPRINT

# build <folder>: all archives of HEAD, in .lab/release of a new clone.
build() {
	git clone --quiet "$PWD" "$1"
	git -C "$1" tag --force "v$version" HEAD >/dev/null
	(
		cd "$1"
		digest=$(go run ./internal/programs/volume/cmd/image -folder "$1/.lab/image" -version "$version")
		VOLUME_IMAGE=$image@$digest goreleaser release --clean --skip publish,announce
		echo "$image@$digest" >.lab/volume-image
	)
}

[ -z "$(git status --short)" ] || say "what is not committed is not in this build"
say "building $version of $(git rev-parse --short HEAD) for ten platforms"
build "$TMPDIR/first"
say "building it again, in another folder"
build "$TMPDIR/the-second-one"
release=$TMPDIR/first/.lab/release
sums=${name}_${version}_SHA256SUMS
diff "$release/$sums" "$TMPDIR/the-second-one/.lab/release/$sums" || fail "the same commit makes other bytes"

cd "$release"
cp "$TMPDIR/first/terraform-registry-manifest.json" "${name}_${version}_manifest.json" # as publishing does
say "verifying checksums, signature and archives"
gpg --batch --quiet --verify "$sums.sig" "$sums" 2>/dev/null || fail "the signature of $sums is wrong"
sha256sum --check --quiet "$sums"
expected=${name}_${version}_manifest.json
for platform in $platforms; do
	archive=${name}_${version}_$platform
	program=${name}_v$version
	[[ $platform != windows_* ]] || program=$program.exe
	found=$(unzip -Z1 "$archive.zip" | sort | paste -sd ' ')
	[ "$found" = "LICENSE $program" ] || fail "$archive.zip has $found"
	grep -q '"bomFormat": "CycloneDX"' "$archive.cdx.json" || fail "$archive.cdx.json is no SBOM"
	expected+=" $archive.zip $archive.cdx.json"
done
[ "$(awk '{ print $2 }' "$sums" | sort)" = "$(tr ' ' '\n' <<<"$expected" | sort)" ] || fail "$sums has other files than $expected"

platform=$(go env GOOS)_$(go env GOARCH)
unzip -q "${name}_${version}_$platform.zip" -d "$TMPDIR/unpacked"
program=$TMPDIR/unpacked/${name}_v$version
grep --quiet --text --fixed-strings "$(<"$TMPDIR/first/.lab/volume-image")" "$program" || fail "the program doesn't name its volume image"

say "building the program of $platform without what was compiled before"
(
	cd "$TMPDIR/the-second-one"
	VOLUME_IMAGE=$(<.lab/volume-image) GOCACHE=$TMPDIR/gocache goreleaser build --clean --single-target --output "$TMPDIR/again"
)
cmp "$program" "$TMPDIR/again" || fail "the program has other bytes if everything is compiled again"

for registry in terraform.io opentofu.org; do
	mirror=$TMPDIR/mirror/registry.$registry/virtclaim/virtclaim
	mkdir -p "$mirror"
	cp "${name}_${version}_$platform.zip" "$mirror"
done
for scenario in quickstart container-images; do
	say "$scenario, by the archive that terraform init unpacks"
	VIRTCLAIM_DEMO_MIRROR=$TMPDIR/mirror "$bin/lab" demo "$scenario"
done
say "all is well: ten archives of $version, the same bytes from each build, and the one for $platform works"
