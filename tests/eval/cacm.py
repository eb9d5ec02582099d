#!/usr/bin/env python3
"""cacm.py DATA OUT: the CACM collection as OUT/docs.trec, OUT/topics and OUT/qrels.

DATA holds cacm.tar.gz (an HTML page for each abstract), topics.cacm.txt and qrels.cacm.txt. A page
is a document named after its file, as it is; the topics and the judgements are copied.
"""
import os
import shutil
import sys
import tarfile

data, out = sys.argv[1:]
os.makedirs(out, exist_ok=True)
pages = {}
with tarfile.open(os.path.join(data, "cacm.tar.gz")) as tar:
    for member in tar:
        if member.isfile() and member.name.endswith(".html"):
            pages[os.path.basename(member.name)[:-5]] = tar.extractfile(member).read()
with open(os.path.join(out, "docs.trec"), "wb") as f:
    for name in sorted(pages):
        f.write(b"<DOC>\n<DOCNO> %s </DOCNO>\n%s\n</DOC>\n" % (name.encode(), pages[name]))
shutil.copyfile(os.path.join(data, "topics.cacm.txt"), os.path.join(out, "topics"))
shutil.copyfile(os.path.join(data, "qrels.cacm.txt"), os.path.join(out, "qrels"))
