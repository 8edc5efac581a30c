#!/bin/sh -e
# Makes the images of this directory again, as root, with mksquashfs and a C library's touch.
work=$(mktemp -d)
tree=$work/tree
mkdir -p "$tree/empty" "$tree/many" "$tree/modes/closed"
i=0
while [ $i -lt 300 ]; do : >"$tree/many/$(printf 'file%03d' $i)"; i=$((i + 1)); done
echo small >"$tree/small"
seq 1 3000 >"$tree/blocks" # three blocks of 4 KiB and an end
dd if=/dev/zero of="$tree/sparse" bs=1 count=1 seek=40000 2>/dev/null
ln "$tree/blocks" "$tree/hard"
ln -s ../small "$tree/empty-link"
ln -s /etc/passwd "$tree/link"
: >"$tree/$(printf 'n%.0s' $(seq 1 255))"
mkfifo "$tree/fifo"
mknod "$tree/null" c 1 3
for mode in 0000 0400 0700 4755 2755 1666; do echo $mode >"$tree/modes/$mode"; chmod $mode "$tree/modes/$mode"; done
chmod 0700 "$tree/modes/closed"
chmod 1777 "$tree/empty"
find "$tree" -exec touch -h -d @1700000000 {} +
make() { # NAME OPTIONS...
  name=$1; shift
  rm -f "$name.squashfs"
  mksquashfs "$tree" "$name.squashfs" -b 4096 -noappend -quiet -no-progress -mkfs-time 1700000000 "$@"
}
for method in gzip xz lz4 zstd lzo; do make $method -comp $method; done
make bcj -comp xz -Xbcj x86
make plain -noI -noD -noF -noX
make nofragments -no-fragments
make alwaysfragments -always-use-fragments
# A directory with an index has an extended inode.
mkdir "$work/indexed"
i=0
while [ $i -lt 600 ]; do : >"$work/indexed/$(printf 'a-name-that-takes-some-room-%03d' $i)"; i=$((i + 1)); done
find "$work/indexed" -exec touch -d @1700000000 {} +
tree=$work/indexed
make indexed
rm -r "$work"
