# Hashes, strings, regular expressions, sorting and objects with destructors.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
{ package Node; our $gone = 0; sub new { my ($class, %of) = @_; return bless {%of}, $class } sub DESTROY { $gone++ } }
my (%count, @nodes);
my $text = join ' ', map { 'w' . ($_ * 7919 % 4999) } 1 .. 120_000;
$count{$1}++ while $text =~ /(\w+)/g;
print scalar(keys %count), ' ', md5_hex(join ',', map { "$_=$count{$_}" } sort keys %count), "\n";
for my $round (1 .. 20) { @nodes = map { Node->new(name => "n$_", links => [1 .. $_ % 20]) } 1 .. 3_000; }
@nodes = ();
print "$Node::gone destroyed\n";
my $joined = ''; $joined .= sprintf('%05d|', $_ ** 2 % 99_991) for 1 .. 100_000;
(my $changed = $joined) =~ s/(\d)(\d)/$2$1/g;
print md5_hex($changed), ' ', length $changed, "\n";
