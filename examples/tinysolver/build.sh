#!/bin/sh
# build.sh production|coverage: the program in build/, with what coverage needs beside it.
set -eu
cd "$(dirname "$0")"
flags="-O1"
[ "$1" = coverage ] && flags="-O0 --coverage"
rm -rf build && mkdir build
# All sources at once, for most of the time goes into reading the library's headers.
for source in src/*.cpp; do echo "#include \"../$source\""; done > build/all.cpp
${CXX:-g++} -std=c++17 $flags -c build/all.cpp -o build/all.o
${CXX:-g++} $flags build/all.o -o build/tinysolve
