package content

import "strconv"

// binarySize is a size in bytes as it is written in a configuration, such as 512Mi.
func binarySize[T int64 | uint64](bytes T) string {
	n, suffix := bytes, 0
	for ; n != 0 && n%1024 == 0 && suffix < 4; suffix++ {
		n /= 1024
	}
	return strconv.FormatInt(int64(n), 10) + []string{" bytes", "Ki", "Mi", "Gi", "Ti"}[suffix]
}
