#!/bin/sh
# make-old.sh GPUIR: makes the indexes of old/ anew, with the gpuir given: a build of commit b995f2b, whose files later
# versions must open, search, update and merge. It needs strace, to end the command in the middle of its work.
#
#   notes       what was indexed
#   file.gpuir  an index file of it
#   live        a live index of it: several segments, deleted documents, some of `gpuir add`
#   begun       what `gpuir index --live` leaves when it is killed before its first commit
#   sections    of an index file of numbered lines, with frequent words: each section's number, flags, length and hash
#   untold      when it is killed behind that, before it has written how files are read
set -eu
gpuir=$(readlink -f "$1")
cd "$(dirname "$0")"
rm -rf old
mkdir -p old/notes/sub
cd old
umask 022
echo 'green tea' >notes/a
echo 'black tea and green cups' >notes/b
printf 'tea in the morning\ncoffee at noon\nbeer at night\n' >notes/sub/c
echo 'hidden tea' >notes/.d
"$gpuir" index -q --positions --store notes -o file.gpuir
"$gpuir" index -q --live --positions --store --chunk-lines 2 --hidden notes -o live
printf '1\tred tea\n2\tblue tea\n3\twhite tea\n' | "$gpuir" add -q --tsv - -o live
"$gpuir" delete -q live 2
echo 'ginger tea' | "$gpuir" add -q --name 4 - -o live
for kill in begun:4 untold:6; do
  strace -f -qq -o /dev/null -e "inject=fsync:signal=SIGKILL:when=${kill#*:}" \
    "$gpuir" index -q --live notes -o "${kill%:*}" || true
done
../numbered.sh >text
"$gpuir" index -q --lines --positions --store --analyzer unicode text -o numbered.gpuir
python3 ../sections.py numbered.gpuir >sections
rm text numbered.gpuir
