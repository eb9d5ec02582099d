#!/bin/sh
# numbered.sh: writes 66,000 lines, enough for dense lists, of words that stand in all, or in one of 4, 14 or 18
awk 'BEGIN { for (i = 0; i < 66000; i++) print "all " (i % 4 ? "" : "some ") (i % 14 ? "" : "few ") \
  (i % 18 ? "" : "rare ") i % 977, i % 31 % 7 }'
