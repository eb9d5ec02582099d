#!/usr/bin/env bash
# mount_tables.sh [tools|queries]: runs tools on a real mount, and asks it queries of every form, and prints what each
# gives as the tables of fuse/README.md. Each row's claim is checked: a row that does not hold says FAILED, and the exit
# status is 1. Tools that are not installed are left out, and named on standard error. Programs are those of GPUIR_BUILD
# (default build).
# shellcheck disable=SC2016,SC2034,SC2317 # commands, checks and functions are evaluated later
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${GPUIR_BUILD:-$root/build}" && pwd)
work=$(mktemp -d /tmp/gpuir-tables-XXXXXX)
mnt=$work/mnt
failed=0
export LC_ALL=C.UTF-8 HOME=$work TERM=xterm

finish() {
  [ -z "${server:-}" ] || kill "$server" 2>/dev/null
  tmux -S "$work/tmux" kill-server 2>/dev/null
  cd /
  for dir in "$mnt" "$work/plain"; do
    if grep -q " $dir fuse" /proc/self/mounts; then fusermount3 -u "$dir" || fusermount3 -u -z "$dir"; fi
  done
  rm -rf "$work"
}
trap finish EXIT

# Two hundred files of ten entries of WordNet; the index has positions.
mkdir -p "$mnt" "$work/plain" "$work/words"
(
  cd "$work" || exit 1
  split -l 10 -a 3 -d --additional-suffix=.txt "$root/tests/data/wordnet.tsv" words/part
  printf 'wolf\n' >words/line$'\n'end.txt
  printf 'a\twolf\n..\twolf\nsub/dir\twolf\n' >odd.tsv
  "$build/gpuir" index -q --positions words -o words.gpuir &&
    "$build/gpuir" index -q --tsv --store odd.tsv -o plain.gpuir
) || exit 1
"$build/gpuirfs" "$work/words.gpuir" "$mnt" && "$build/gpuirfs" "$work/plain.gpuir" "$work/plain" || exit 1
cd "$mnt" || exit 1

# What a table shows of a command: without the folder of this run, and without what watches it.
shown() {
  local text=${1//"$work/"/}
  text=${text//127.0.0.1:\$port/8000} text=${text//127.0.0.1 \$port/8000}
  case $text in
    serving*) text=${text#serving * } text=${text/nginx_here/nginx} ;;
    screen*) text=${text#*\"} text=${text%%\"*} ;;
  esac
  printf '%s' "${text//|/\\|}"
}

# row NAME COMMAND CHECK GIVES: runs a command in the mount; $out is what it printed, $rc its status
row() {
  local out rc gives=$4
  out=$(eval "$2" 2>&1 </dev/null)
  rc=$?
  if ! eval "$3"; then
    failed=1
    gives="FAILED: status $rc, $(head -n 3 <<<"$out" | tr '\n' ' ')"
  fi
  printf '| %s | `%s` | %s |\n' "$1" "$(shown "$2")" "$gives"
}

# Whether what a row needs is there.
has() { # PROGRAM COMMAND
  command -v "$1" >/dev/null || return 1
  [[ $2 != screen* ]] || command -v tmux >/dev/null || return 1
  [[ $2 != serving* ]] || command -v curl >/dev/null || return 1
  [ "$1" != setpriv ] || [ "$(id -u)" -eq 0 ] # only root has other users to be
}

# tool PROGRAM COMMAND CHECK GIVES: a row, if the program is installed
tool() {
  local program=${1%% *}
  if has "$program" "$2"; then
    row "$@"
  else
    printf 'not installed: %s\n' "$program" >&2
  fi
}

# Waits until the terminal shows something that matches, 10 seconds at most, and prints what it shows.
shows() { # PATTERN
  local i text
  for i in $(seq 100); do
    text=$(tmux -S "$work/tmux" capture-pane -p)
    grep -q "$1" <<<"$text" && break
    sleep 0.1
  done
  printf '%s\n' "$text"
}

# Prints what a program shows on a terminal of its own, after KEY... if there are any.
screen() { # PATTERN COMMAND KEY...
  tmux -S "$work/tmux" -f /dev/null new-session -d -x 100 -y 20 "$2"
  if [ $# -gt 2 ]; then
    shows . >/dev/null
    tmux -S "$work/tmux" send-keys "${@:3}"
  fi
  shows "$1"
  tmux -S "$work/tmux" kill-server
  while tmux -S "$work/tmux" has-session 2>/dev/null; do sleep 0.05; done
  rm -f "$work/tmux"
}

# Serves the mount with a command that listens on $port, and fetches a page.
serving() { # PAGE COMMAND...
  local page=$1 i
  shift
  "$@" >"$work/server.log" 2>&1 &
  server=$!
  for i in $(seq 50); do
    curl -sf -o /dev/null "http://127.0.0.1:$port/README" && break
    sleep 0.1
  done
  curl -s "http://127.0.0.1:$port/$page"
  kill "$server"
  wait "$server" 2>/dev/null
  server=
}
port=$((20000 + $$ % 20000))
searches() { awk '$1 == "searches" { print $2 }' .stats; }

tools() {
  echo '| tool | for example | gives |'
  echo '|---|---|---|'
  tool cat 'cat pass/planet+sun' '[[ $out == */words/part*:*-*planet* ]]' 'passages under `path:first-last`'
  tool head 'head -n 1 query/planet+sun' '[[ $out =~ ^[0-9]+$ ]]' 'the best docID'
  tool tail 'tail -n 1 query/planet+sun.tsv' '[[ $out == *$'\''\t'\''* ]]' 'the last hit'
  tool wc 'wc -l <query/@k=100/planet' '[ "$out" -gt 10 ]' 'the number of hits'
  tool nl 'nl query/planet.paths' '[[ $out == *1*/words/part* ]]' 'numbered paths'
  tool cut 'cut -f 4 query/planet.tsv' '[[ $out == *words/part* ]]' 'names'
  tool awk "awk -F '\t' '\$3 > 2 { print \$2 }' query/planet.tsv" '[[ $out =~ [0-9] ]]' 'docIDs by score'
  tool sort 'sort -n query/planet' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'docIDs in order'
  tool comm 'comm -12 <(sort query/planet) <(sort query/sun)' '[[ $out =~ [0-9] ]]' 'docIDs of both'
  tool join 'join <(sort query/planet) <(sort query/sun)' '[[ $out =~ [0-9] ]]' 'the same'
  tool paste 'paste query/planet query/planet.paths' '[[ $out == *$'\''\t'\''/* ]]' 'docIDs beside paths'
  tool diff 'diff query/planet query/@and/planet' '[ $rc -eq 0 ]' 'no difference'
  tool split "split -l 5 query/planet $work/s." '[ $rc -eq 0 ] && [ -s "$work/s.ab" ]' 'the list in parts'
  tool shuf 'shuf -n 1 query/planet' '[[ $out =~ ^[0-9]+$ ]]' 'a hit by chance'
  tool strings 'strings pass/planet' '[[ $out == *planet* ]]' 'the text'
  tool xxd 'xxd -l 16 pass/planet' '[[ $out == 00000000:* ]]' 'bytes'
  tool column "column -t -s \$'\t' query/planet.tsv" '[[ $out == *words/part* ]]' 'a table'
  tool tail 'timeout 2 tail -f .stats' '[[ $out == *open_files* ]] && [ $rc -eq 124 ]' \
    'counters, again after each change'
  tool grep 'grep -c planet pass/planet' '[ "$out" -gt 0 ]' 'lines'
  tool 'grep -r' 'grep -rl planet files/planet' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'every file that has it'
  tool 'grep -r' 'grep -r planet hits/planet' '[ $rc -eq 1 ]' 'nothing: `hits/` has links, for `grep -R`'
  tool 'grep -R' 'grep -Rl planet hits/planet' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'every document that has it'
  tool rg 'rg -l planet files/planet' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'every file that has it'
  tool find 'find files/planet -type f' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'ten files'
  tool find 'find . -name "@*" -prune -o -print' '[ "$(wc -l <<<"$out")" -eq 54 ]' 'the tree; no query runs'
  tool tree 'tree files/planet' '[[ $out == *"10 files"* ]]' 'ten files'
  tool ls 'ls files/planet' '[ "$(wc -l <<<"$out")" -eq 10 ]' 'names in order of rank'
  tool stat 'stat -c %F files/planet/000001-*' '[ "$out" = "regular file" ]' 'a regular file of exact size'
  tool du 'du -ab files/planet | tail -n 1' '[ "${out%%[[:blank:]]*}" -gt 1000 ]' 'bytes of the texts'
  tool df 'df --output=fstype . | tail -n 1' '[ "$out" = fuse.gpuirfs ]' 'the size of the index'
  tool 'cp -a' "cp -a files/planet $work/copied && ls $work/copied | wc -l" '[ "$out" -eq 10 ]' \
    'ten files, read-only as in the mount'
  tool 'cp -rL' "cp -rL hits/planet $work/followed && grep -rl planet $work/followed | wc -l" '[ "$out" -eq 10 ]' \
    'documents; `cp -a` of `hits/` copies links'
  tool rsync "rsync -a files/planet $work/synced && ls $work/synced/planet | wc -l" '[ "$out" -eq 10 ]' 'ten files'
  tool tar "tar cf $work/t.tar files/planet && tar tf $work/t.tar | grep -c /0000" '[ "$out" -eq 10 ]' 'ten files'
  tool zip "zip -qr $work/z.zip files/planet && unzip -l $work/z.zip | grep -c /0000" '[ "$out" -eq 10 ]' 'ten files'
  tool sha256sum 'sha256sum <files/planet/000001-*' '[ "$out" = "$(sha256sum <"$(head -n 1 query/planet.paths)")" ]' \
    'the sum of the source'
  tool dd 'dd if=pass/planet bs=1 skip=1 count=8 status=none' '[ "${#out}" -eq 8 ]' 'a part'
  tool cmp 'cmp files/planet/000001-* "$(head -n 1 query/planet.paths)"' '[ $rc -eq 0 ]' 'the same as the source'
  tool file 'file -b files/planet/000001-*' '[[ $out == *text* ]]' 'text'
  tool 'git diff' 'git diff --no-index --stat query/planet query/sun' '[[ $out == *"1 file changed"* ]]' 'a comparison'
  tool xargs 'xargs -d "\n" grep -l planet <query/planet.paths' '[ "$(wc -l <<<"$out")" -eq 10 ]' \
    'tools on the sources themselves'
  tool jq 'jq -r ".[0].name" query/planet.json' '[[ $out == words/part* ]]' 'a field'
  command='python3 -c "import mmap; f = open(\"pass/planet\"); '
  command+='print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ).find(b\"planet\"))"'
  tool python3 "$command" '[[ $out =~ ^[0-9]+$ ]]' 'a file that is mapped'
  command="python3 -c 'import os; o = open(\"$work/sent\", \"wb\"); "
  command+="print(os.sendfile(o.fileno(), os.open(\"pass/planet\", 0), 0, 99999))'"
  tool python3 "$command" '[ "$out" -gt 100 ]' 'bytes sent by the kernel'
  tool less 'screen planet "less pass/planet"' '[[ $out == *planet* ]]' 'pages'
  tool vim.tiny 'screen planet "vim.tiny -R pass/planet"' '[[ $out == *planet* && $out != *swap* ]]' \
    'the text; no swap file is asked for'
  tool vim 'screen part.*txt "vim -q grep/planet" :clist Enter' '[[ $out == *part*.txt* ]]' \
    'a list of places, each of which opens its file'
  tool mc 'screen 00001 "mc -u files/planet"' '[[ $out == *00001* ]]' 'a panel with the files'
  tool bash "bash -c 'compgen -f pass/@to'" '[[ $out == *@tokens=* ]]' 'options by TAB'
  tool zsh "zsh -fc 'cat pass/planet+sun'" '[[ $out == *planet* ]]' 'passages; quote names with `?` or `*`'
  tool fish "fish -Nc 'cat pass/planet+sun'" '[[ $out == *planet* ]]' 'passages'
  tool fzf 'fzf -f part <query/planet.paths' '[[ $out == */words/part* ]]' 'a choice among paths'
  tool busybox 'serving pass/planet busybox httpd -f -p 127.0.0.1:$port' '[[ $out == *planet* ]]' 'passages over HTTP'
  tool nginx 'serving query/planet.json nginx_here' '[[ $out == *docid* ]]' 'JSON over HTTP; `query/` lists options'
  tool python3 'serving grep/planet python3 -m http.server --bind 127.0.0.1 $port' '[[ $out == *:*planet* ]]' \
    'lines over HTTP'
  tool setpriv 'setpriv --reuid=64001 --regid=64001 --clear-groups cat README' '[[ $out == *"ermission denied"* ]]' \
    'nothing for another user: see `allow_other`'
  tool touch 'touch query/planet; rm query/planet; mkdir query/planet' \
    '[[ $out == *"Read-only"* || $out == *exists* ]] && [ $rc -ne 0 ]' \
    'an error: nothing can be written'
}

nginx_here() {
  cat >"$work/nginx.conf" <<END
daemon off; pid $work/nginx.pid; error_log $work/nginx.log; events {}
http { access_log off; sendfile on;
  client_body_temp_path $work/n1; proxy_temp_path $work/n2; fastcgi_temp_path $work/n3;
  uwsgi_temp_path $work/n4; scgi_temp_path $work/n5;
  server { listen 127.0.0.1:$port; root $mnt; autoindex on; } }
END
  exec nginx -c "$work/nginx.conf" -g "user root;"
}

# form NAME-IN-THE-MOUNT CHECK GIVES: a row of the second table
form() {
  local name=${1#"$work/plain/"} gives=$3 out rc
  [ ${#name} -le 60 ] || name="${name:0:16}…"
  out=$(cat "$1" 2>&1)
  rc=$?
  if ! eval "$2"; then
    failed=1
    gives="FAILED: status $rc, $(head -n 3 <<<"$out" | tr '\n' ' ')"
  fi
  printf '| `%s` | %s |\n' "${name//|/\\|}" "$gives"
}
last() { awk -F '\t' -v key="last_$1" '$1 == key { print $2 }' .stats; }
hits='[[ $rc -eq 0 && $out =~ ^[0-9] ]]'
invalid='[[ $out == *"Invalid argument"* ]]'
absent='[[ $out == *"No such file"* ]]'

queries() {
  echo '| name | gives |'
  echo '|---|---|'
  form 'query/planet+sun' "$hits" 'docIDs of documents that have both words'
  form 'query/planet sun' "$hits" 'the same'
  form 'query/planet%20sun' "$hits" 'the same'
  form 'query/PLANET+Sun' "$hits" 'the same'
  form 'query/++planet++sun+' "$hits" 'the same'
  form 'query/café' '[ $rc -eq 0 ]' 'a word in UTF-8'
  form 'query/caf%C3%A9' '[ $rc -eq 0 ]' 'the same'
  form 'query/c%2B%2B' '[ $rc -eq 0 ]' 'text with `+`, parted as the analyzer does'
  form 'query/planet;sun' "$hits" 'both words: `;`, `,`, `?` and other signs part words'
  form 'query/planet,sun?' "$hits" 'the same'
  form "query/$(printf 'y%.0s' $(seq 255))" '[ $rc -eq 0 ]' 'the longest name, of 255 bytes'
  form "query/$(printf 'y%.0s' $(seq 256))" '[[ $out == *"name too long"* ]]' '`File name too long`'
  form 'query/planet+-sun' "$hits" 'documents without the second word'
  form 'query/-planet' "$invalid && [[ \$(last error) == *-planet* ]]" \
    '`Invalid argument`; `.stats` says that no word is left to look for'
  form 'query/+' "$invalid" 'the same'
  form 'query/%20' "$invalid" 'the same'
  form 'query/%zz' "$invalid && [[ \$(last error) == *hexadecimal* ]]" '`Invalid argument`; `.stats` tells of the `%`'
  form 'query/@or/planet+unicornx' "$hits" 'documents with any of the words'
  form 'query/@andor/planet+sun' "$hits" 'with all, or else with any'
  form 'query/@k=3/@or/planet+sun' '[ "$(wc -l <<<"$out")" -eq 3 ]' 'options in any order'
  form 'query/@foo' "$invalid && [[ \$(last error) == *'not an option'* ]]" \
    '`Invalid argument`; `.stats` says that it is no option'
  form 'query/@k=abc' "$invalid" 'the same'
  form 'query/@k=3@or' "$invalid" 'the same'
  form 'query/@tokens=9/planet' "$invalid" 'the same: passages are in `pass/` and `grep/`'
  form 'query/@k=9999999/planet' "$invalid && [[ \$(last error) == *'too large'* ]]" 'the same: over `max_k`'
  form 'query/..x' "$absent" '`No such file`: a name with a leading dot is no query'
  form 'query/unicornx' '[ $rc -eq 0 ] && [ -z "$out" ]' 'an empty file: no document'
  form 'pass/unicornx' '[[ $out == "(no document has '\''unicornx'\''"* ]]' 'says so in brackets'
  form 'pass/planett' "[[ \$out == *\"'planet' is searched in its place\"* ]]" \
    'searches the word that is written nearly so, and says so'
  form 'pass/which+planet+is+near+the+sun?' '[[ $out == *planet* ]]' 'a sentence: any of its words will do'
  form 'query/"solar+system"' "$hits" 'a phrase, where the index has positions'
  form 'query/%22solar+system%22' "$hits" 'the same'
  form "$work/plain/query/\"a+wolf\"" '[[ $out == *"not supported"* ]]' \
    '`Operation not supported` where it has none (another index)'
  form 'query/"solar+system' "$invalid && [[ \$(last error) == *quote* ]]" \
    '`Invalid argument`; `.stats` says which quote is not closed'
  form 'query/plan*' "$hits" 'words that begin so'
  form 'query/plan%2A' "$hits" 'the same'
  form 'query/*' "$invalid" '`Invalid argument`: no letters before the `*`'
  form 'query/planet+OR+sun' "$invalid && [[ \$(last error) == *'no operator'* ]]" \
    '`Invalid argument`; `.stats` says that OR is no operator'
  form 'query/planet+AND+sun' "$invalid" 'the same; in lower case they are words'
  form 'pass/planet+OR+sun' '[[ $out == "('\''OR'\'' is no operator"*planet* ]]' 'the same in brackets, and passages'
  form 'query/title:planet' '[[ $(last note) == *"no operator"* ]]' 'two words; `.stats` notes that fields mean nothing'
  form 'query/planet.tsv' '[[ $out == 1$'\''\t'\''* ]]' 'rank, docID, score, name'
  form 'query/planet.json' '[[ $out == "["* ]]' 'an array of objects'
  form 'query/planet.paths' '[[ $out == /* ]]' 'paths of the sources'
  form 'query/planet.csv' "$absent" '`No such file`: there is no such form'
  form 'query/planet%2Ecsv' '[ $rc -eq 0 ]' 'text with a dot'
  form 'query/index.html' "$absent" '`No such file`: servers look for it'
  form 'pass/planet.json' "$absent" '`No such file`: passages have one form'
  form 'query/%40or' '[ $rc -eq 0 ]' 'the word "or"'
  form 'query/a%00planet' '[ $rc -eq 0 ]' 'two words, parted by a NUL'
  form "query/$(seq -f 'x%g' -s + 1 65)" '[[ $out == *"too long"* ]]' '`Argument list too long`: over 64 words'
  form 'hits/planet' '[[ $out == *"Is a directory"* ]]' '`Is a directory`'
  form 'doc/999999' "$absent" '`No such file`'
  form "$work/plain/files/wolf/000002-.." '[ "$out" = wolf ]' 'a document whose name is `..`'
  form "$work/plain/files/wolf/000003-sub_dir" '[ "$out" = wolf ]' 'one with a slash in its name'
  form "$(echo files/wolf/*line_end.txt)" '[ "$out" = wolf ]' 'one with a line end in its name'
}

case ${1:-all} in
  tools) tools ;;
  queries) queries ;;
  all)
    tools
    echo
    queries
    ;;
  *)
    echo "usage: mount_tables.sh [tools|queries]" >&2
    exit 2
    ;;
esac
exit $failed
