#!/usr/bin/env bash
# third.sh: fetches the sources of xxHash, utf8proc and Snowball, of which source distributions and wheels for other
# machines are built, into the folder third beside it: Debian's source packages, by an apt directory of its own, which
# nothing of the system's is changed for. Snowball's C code is made by its own compiler. Needs network, make and perl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,source}
# shellcheck disable=SC2016 # apt fills them in
read -r archive suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
  'Created-By: Packages' 'Label: Debian' |
  head -n 1) || { echo "third.sh: apt knows no archive of Debian here" >&2; exit 1; }
key=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $key ]] || key=
echo "deb-src ${key:+[signed-by=$key]} $archive $suite main" >"$work/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update || { echo "third.sh: Debian's source packages cannot be reached" >&2; exit 1; }
(cd "$work/source" && "${apt[@]}" source --download-only xxhash utf8proc snowball)
for name in xxhash utf8proc snowball; do
  mkdir "$work/$name"
  rm -f "$work/source/"*.asc
  tar -xf "$work/source/$name"_*.orig.tar.* -C "$work/$name" --strip-components 1
done

rm -rf third
mkdir -p third/{xxhash,utf8proc,stemmer}
cp "$work/xxhash/xxhash.h" third/xxhash/
cp "$work/xxhash/LICENSE" third/xxhash/LICENCE
cp "$work"/utf8proc/{utf8proc.c,utf8proc.h,utf8proc_data.c} third/utf8proc/
cp "$work/utf8proc/LICENSE.md" third/utf8proc/LICENCE
make -s -C "$work/snowball" dist_libstemmer_c >/dev/null
mkdir "$work/made"
tar -xf "$work"/snowball/dist/libstemmer_c-*.tar.gz -C "$work/made" --strip-components 1
cp -r "$work"/made/{include,libstemmer,runtime,src_c} third/stemmer/
rm -f third/stemmer/libstemmer/libstemmer.c
cp "$work/made/COPYING" third/stemmer/LICENCE
(cd third/stemmer && find . -name '*.c' | sort | sed 's|^\./||') >third/stemmer/sources.txt
(cd "$work/source" && ls -- *.dsc) | sed 's/\.dsc$//' >third/versions.txt
cat third/versions.txt
