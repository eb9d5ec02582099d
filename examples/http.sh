#!/bin/sh
# http.sh MOUNT [PORT]: serves a mounted index over HTTP, to this machine alone, by busybox and no code:
#
#   curl 'http://127.0.0.1:8080/query/@or/@k=3/green+tea.json'    the best documents, as JSON
#   curl 'http://127.0.0.1:8080/pass/how+is+green+tea+brewed'     the passages that answer
#
# nginx.conf does the same by nginx. It ends by a signal.
set -eu
exec busybox httpd -f -c /dev/null -p "127.0.0.1:${2:-8080}" -h "$1"
