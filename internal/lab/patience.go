package lab

import (
	"os"
	"strconv"
	"time"
)

// patience is the factor for all times that the lab and its tests wait for something at most, which a busy machine needs.
var patience = max(1, fromEnvironment("VIRTCLAIM_TEST_PATIENCE"))

// Patience is a time limit for something that a healthy, idle machine does within d. It costs nothing when that happens.
func Patience(d time.Duration) time.Duration { return time.Duration(patience) * d }

func fromEnvironment(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name)) // without a number it is 0
	return n
}
