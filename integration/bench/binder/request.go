package main

import (
	"fmt"
	"os"

	"podstarter/payload"
)

func request(image string) payload.BindRequest {
	return payload.BindRequest{Activation: fmt.Sprintf("bench-%d", os.Getpid()), Image: image, Owner: "bench"}
}
