#!/bin/sh
# make-wordnet.sh [FOLDER]: makes wordnet.tsv beside this script out of the Debian package dict-wn (WordNet 3.0).
#
# FOLDER holds dict-wn unpacked or installed; without it the package is fetched with apt-get and unpacked to a
# temporary folder, without being installed. A line is `headword<TAB>text`. Chosen are entries about computing, dogs
# and wolves, stringed instruments and the planets, so that queries find several documents, and each 76th of the rest.
# Of several headwords with the same text only the first is taken; coarse words and long entries are left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

root=${1:-$tmp}
if [ $# -eq 0 ]; then
  (cd "$tmp" && apt-get download -q dict-wn && dpkg-deb -x dict-wn_*.deb .)
fi

perl "$here/../../tools/dictd-tsv.pl" "$root/usr/share/dictd/wn" | LC_ALL=C awk -F '\t' '
  BEGIN { split("computer dictionary dog fox index library memory planet query search text wolf word", list, " ")
          for (i in list) chosen[list[i]] = 1 }
  { definition = substr($2, length($1) + 1); sub(/ \[(syn|ant).*/, "", definition) }
  $1 in chosen { print; next }
  tolower($2) ~ /obscen|vulgar|offensive|ethnic slur|disparag|derogat|sexual|genital/ { next }
  length($2) > 2000 || length($1) < 2 || seen[definition]++ { next }
  / (computer|computers|software|computing)[ ,;:)]/ ||
  / (dog|dogs|wolf|wolves|fox)[ ,;:)]/ ||
  / (stringed instrument|violin|guitar|planet|planets)[ ,;:)]/ { print; next }
  ++rest % 76 == 0 { print }
' >"$tmp/wordnet.tsv"
mv "$tmp/wordnet.tsv" "$here/wordnet.tsv"
chmod 644 "$here/wordnet.tsv"
wc -lc "$here/wordnet.tsv"
