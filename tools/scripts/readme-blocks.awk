# readme-blocks.awk: takes the fenced blocks out of a Markdown file.
#
#   awk -v dir=DIR -f readme-blocks.awk README.md      each block to DIR/NN.LANGUAGE[.TAG], NN from 01
#
# A fence is ```LANGUAGE [TAG]. The C program in a block whose first line is `/* NAME.c */` goes to DIR/NAME.c too.
/^```/ {
  if (inside) {
    close(file)
    if (copy != "") close(copy)
    file = copy = ""
  } else {
    split(substr($0, 4), info, " ")
    file = sprintf("%s/%02d.%s%s", dir, ++n, info[1] == "" ? "text" : info[1], info[2] == "" ? "" : "." info[2])
    printf "" >file
    first = 1
  }
  inside = !inside
  next
}
inside {
  if (first && file ~ /\.c$/ && match($0, /[a-z0-9_-]+\.c /)) copy = dir "/" substr($0, RSTART, RLENGTH - 1)
  first = 0
  print >file
  if (copy != "") print >copy
}
