#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# image.sh FILES IMAGE: makes a container image with a layer for each file, as a directory for skopeo.
set -eu
mkdir "$2"
# moves a file to the name that its digest gives it: digest and size
keep() {
	digest=$(sha256sum < "$1")
	digest=${digest%% *}
	size=$(stat -c %s "$1")
	mv "$1" "$2/$digest"
}
type=application/vnd.oci.image
layers=
digests=
for file in "$1"/*; do
	tar -C "$1" -cf "$2/new" "$(basename "$file")"
	keep "$2/new" "$2"
	layers="$layers${layers:+,}{\"mediaType\":\"$type.layer.v1.tar\",\"digest\":\"sha256:$digest\",\"size\":$size}"
	digests="$digests${digests:+,}\"sha256:$digest\""
done
printf '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[%s]}}' "$digests" > "$2/new"
keep "$2/new" "$2"
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json","digest":"sha256:%s","size":%s},"layers":[%s]}' \
	"$type" "$type" "$digest" "$size" "$layers" > "$2/manifest.json"
printf 'Directory Transport Version: 1.1\n' > "$2/version"
