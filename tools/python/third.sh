#!/usr/bin/env bash
# third.sh: fetches the sources of xxHash, utf8proc and Snowball, of which source distributions and wheels for other
# machines are built, into the folder third beside it: Debian's source packages, by an apt directory of its own, which
# nothing of the system's is changed for. Snowball's C code is made by its own compiler. Needs network, make and perl.
# The folder appears when all of it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work" third.new' EXIT
stop() { echo "third.sh: $*" >&2; exit 1; }
mkdir -p "$work"/{lists/partial,cache/archives/partial,source}
# shellcheck disable=SC2016 # apt fills them in
read -r archive suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
  'Created-By: Packages' 'Label: Debian' |
  head -n 1) || stop "apt knows no archive of Debian here"
key=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $key ]] || key=
echo "deb-src ${key:+[signed-by=$key]} $archive $suite main" >"$work/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root
  -o APT::Update::Error-Mode=any) # otherwise update says of an archive that cannot be reached that all is well
"${apt[@]}" update || stop "Debian's source packages cannot be reached"
(cd "$work/source" && "${apt[@]}" source --download-only xxhash utf8proc snowball) ||
  stop "Debian's source packages cannot be had"
for name in xxhash utf8proc snowball; do
  mkdir "$work/$name"
  rm -f "$work/source/"*.asc
  tar -xf "$work/source/$name"_*.orig.tar.* -C "$work/$name" --strip-components 1
done

rm -rf third third.new
mkdir -p third.new/{xxhash,utf8proc,stemmer}
cp "$work/xxhash/xxhash.h" third.new/xxhash/
cp "$work/xxhash/LICENSE" third.new/xxhash/LICENCE
cp "$work"/utf8proc/{utf8proc.c,utf8proc.h,utf8proc_data.c} third.new/utf8proc/
cp "$work/utf8proc/LICENSE.md" third.new/utf8proc/LICENCE
make -s -C "$work/snowball" dist_libstemmer_c >/dev/null
mkdir "$work/made"
tar -xf "$work"/snowball/dist/libstemmer_c-*.tar.gz -C "$work/made" --strip-components 1
cp -r "$work"/made/{include,libstemmer,runtime,src_c} third.new/stemmer/
rm -f third.new/stemmer/libstemmer/libstemmer.c
cp "$work/made/COPYING" third.new/stemmer/LICENCE
(cd third.new/stemmer && find . -name '*.c' | sort | sed 's|^\./||') >third.new/stemmer/sources.txt
(cd "$work/source" && ls -- *.dsc) | sed 's/\.dsc$//' >third.new/versions.txt
mv third.new third
cat third/versions.txt
