#!/bin/busybox sh
sync
exec /bin/busybox poweroff -f
