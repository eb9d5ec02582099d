#!/usr/bin/env bash
# fetch-corpora.sh [-d FOLDER] linux|dict|manuals...: fetches large real collections out of Debian packages, which are
# downloaded with apt-get and unpacked, not installed, and prints the command that indexes each.
#
#   linux   the kernel sources of linux-source-6.1: FOLDER/linux, 78,576 text files, 1.3 GB
#   dict    dictionary entries of dict-gcide, dict-wn, dict-freedict-eng-deu, edict and enamdict:
#           FOLDER/dict.tsv, 1.74 million lines `dictionary:headword<TAB>text`, 200 MB
#   manuals the HTML pages of 18 packages of manuals: FOLDER/manuals.tsv, lines `path<TAB>text`; beside it the links
#           among them and the dates of the files, for orders of documents (manuals.py says more)
#   -d      where to put them (default build/corpora)
#
# It can be started again after an interruption: what is complete is not fetched or unpacked a second time.
#
# How the dictionaries become lines: those in dictd format (gcide, wn, freedict-eng-deu) give a line for each entry,
# with white space made single spaces and without the entries about the dictionary itself (dictd-tsv.pl says more);
# edict and enamdict have an entry a line in EUC-JP, which becomes UTF-8, named by what precedes its first space;
# their first line, a notice, is left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$here/../../build/corpora

usage() {
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
  exit "$1"
}
die() {
  echo "fetch-corpora: $*" >&2
  exit 1
}

while getopts d:h option; do
  case $option in
    d) folder=$OPTARG ;;
    h) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -gt 0 ]] || usage 2 >&2
for name in "$@"; do
  [[ $name == linux || $name == dict || $name == manuals ]] ||
    die "$name is not one of the corpora: linux, dict, manuals"
done
for tool in apt-get dpkg-deb perl python3 iconv xz gzip tar; do
  command -v "$tool" >/dev/null || die "$tool is needed"
done
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
mkdir -p "$folder/deb"

download() { (cd "$folder/deb/partial" && apt-get download -q -o APT::Sandbox::User="$(id -un)" "$1" >&2); }

# deb PACKAGE: fetches the package unless it is there, and prints its path
deb() {
  local package=$1 found
  found=$(find "$folder/deb" -name "${package}_*.deb" | sort | tail -n 1)
  if [[ -z $found ]] || ! dpkg-deb --info "$found" >/dev/null 2>&1; then
    echo "fetching $package" >&2
    rm -rf "$folder/deb/partial" "$folder"/deb/"$package"_*.deb
    mkdir "$folder/deb/partial"
    download "$package" || { apt-get update -q >&2 && download "$package"; } ||
      die "apt-get could not download $package"
    dpkg-deb --info "$folder"/deb/partial/*.deb >/dev/null || die "$package came damaged"
    mv "$folder"/deb/partial/*.deb "$folder/deb/"
    rmdir "$folder/deb/partial"
    found=$(find "$folder/deb" -name "${package}_*.deb" | sort | tail -n 1)
  fi
  echo "$found"
}

relative() { realpath --relative-to=. "$1"; }

fetch_linux() {
  if [[ ! -d $folder/linux ]]; then
    local package
    package=$(deb linux-source-6.1)
    echo "unpacking the kernel sources (1.3 GB)" >&2
    rm -rf "$folder/linux.part"
    mkdir "$folder/linux.part"
    dpkg-deb --fsys-tarfile "$package" | tar -xO --wildcards '*/linux-source-6.1.tar.xz' |
      tar -xJ -C "$folder/linux.part" --strip-components=1
    # The packager's .gitignore leaves out all but debian/, and others what a build makes: here all is text to index.
    find "$folder/linux.part" -name .gitignore -delete
    mv "$folder/linux.part" "$folder/linux"
  fi
  local files
  files=$(find "$folder/linux" -type f | wc -l)
  ((files > 70000)) || die "$folder/linux holds only $files files; remove it and start again"
  echo "linux: $files files"
  echo "  each file a document:            gpuir index --analyzer ascii $(relative "$folder/linux")" \
    "-o $(relative "$folder")/linux.gpuir"
  echo "  each 25 lines of a file:         gpuir index --chunk-lines 25 --analyzer ascii $(relative "$folder/linux")" \
    "-o $(relative "$folder")/linux-chunks.gpuir"
}

dictd() { # PACKAGE NAME
  local package
  package=$(deb "$1")
  rm -rf "$folder/dict.part"
  mkdir "$folder/dict.part"
  dpkg-deb -x "$package" "$folder/dict.part"
  perl "$here/dictd-tsv.pl" "$folder/dict.part/usr/share/dictd/$2" "$2:"
  rm -rf "$folder/dict.part"
}

edict() { # NAME
  local package
  package=$(deb "$1")
  dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/share/edict/$1" | iconv -f EUC-JP -t UTF-8 |
    awk -v name="$1" 'NR > 1 { gsub(/\t/, " "); print name ":" $1 "\t" $0 }'
}

fetch_dict() {
  if [[ ! -f $folder/dict.tsv ]]; then
    {
      dictd dict-gcide gcide
      dictd dict-wn wn
      dictd dict-freedict-eng-deu freedict-eng-deu
      edict edict
      edict enamdict
    } >"$folder/dict.tsv.part"
    mv "$folder/dict.tsv.part" "$folder/dict.tsv"
  fi
  local lines
  lines=$(wc -l <"$folder/dict.tsv")
  ((lines > 1700000)) || die "$folder/dict.tsv holds only $lines lines; remove it and start again"
  echo "dict: $lines entries"
  echo "  each entry a document:           gpuir index --tsv --analyzer unicode $(relative "$folder")/dict.tsv" \
    "-o $(relative "$folder")/dict.gpuir"
}

fetch_manuals() {
  local name package pages
  if [[ ! -f $folder/manuals.tsv ]]; then
    rm -rf "$folder/manuals.part"
    for name in apache2-doc cppreference-doc-en-html erlang-doc ghc-doc git-doc libboost1.81-doc libstdc++-12-doc \
      linux-doc-6.1 llvm-14-doc openjdk-17-doc postgresql-doc-15 python-django-doc python-pandas-doc python-scipy-doc \
      python3.11-doc qtbase5-doc-html rust-doc wx3.2-doc; do
      package=$(deb "$name")
      mkdir -p "$folder/manuals.part/$name"
      dpkg-deb -x "$package" "$folder/manuals.part/$name"
    done
    "$here/manuals.py" "$folder/manuals.part" "$folder/manuals.new"
    for name in links dates tsv; do mv "$folder/manuals.new.$name" "$folder/manuals.$name"; done
    rm -rf "$folder/manuals.part"
  fi
  pages=$(wc -l <"$folder/manuals.tsv")
  ((pages > 50000)) || die "$folder/manuals.tsv holds only $pages pages; remove it and start again"
  echo "manuals: $pages pages"
  echo "  each page a document:            gpuir index --tsv --analyzer unicode $(relative "$folder")/manuals.tsv" \
    "-o $(relative "$folder")/manuals.gpuir"
}

for name in "$@"; do "fetch_$name"; done
