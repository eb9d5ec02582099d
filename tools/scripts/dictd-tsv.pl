#!/usr/bin/perl
# dictd-tsv.pl BASE [PREFIX]: prints a dictionary in dictd format as lines `PREFIXheadword<TAB>text`.
#
# Reads BASE.index and BASE.dict.dz (or BASE.dict). Entries come in the order of the dictionary; one that several
# headwords point at is printed once, under the longest that it begins with, otherwise the first. White space within
# an entry becomes single spaces, which leaves no tab and no line end in it. Entries about the dictionary itself
# (00-database-...) are left out.
use strict;
use warnings;

@ARGV == 1 || @ARGV == 2 or die "usage: dictd-tsv.pl BASE [PREFIX]\n";
my ($base, $prefix) = (@ARGV, '');

# dictd writes offsets and lengths as base 64 numbers, most significant digit first.
my %digit;
my $n = 0;
$digit{$_} = $n++ for 'A' .. 'Z', 'a' .. 'z', 0 .. 9, '+', '/';

sub number {
    my $value = 0;
    $value = $value * 64 + ($digit{$_} // die "$base.index: not a number: $_[0]\n") for split //, $_[0];
    return $value;
}

my $file = -e "$base.dict.dz" ? "$base.dict.dz" : "$base.dict";
open my $dict, '-|', 'gzip', '-dcf', $file or die "$file: $!\n";
my $text = do { local $/; <$dict> };
close $dict or die "$file: cannot be unpacked\n";

my (%heads, %about);
open my $index, '<', "$base.index" or die "$base.index: $!\n";
while (my $line = <$index>) {
    chomp $line;
    my ($head, $offset, $length) = split /\t/, $line;
    $about{"$offset $length"} = 1 if $head =~ /^00-?database/;
    push @{ $heads{"$offset $length"} }, $head;
}
my @entries = map { [(map { number($_) } split / /), $heads{$_}] } grep { !$about{$_} } keys %heads;
for my $entry (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @entries) {
    my ($offset, $length, $heads) = @$entry;
    $offset + $length <= length $text or die "$base.index: $heads->[0] lies outside the dictionary\n";
    my $body = substr $text, $offset, $length;
    my ($head) = ((grep { lc eq lc substr $body, 0, length } sort { length $b <=> length $a } @$heads), $heads->[0]);
    for ($head, $body) { s/\s+/ /g; s/^ //; s/ $//; }
    print "$prefix$head\t$body\n";
}
