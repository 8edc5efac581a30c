package main

import (
	"fmt"
	"os"

	"podstarter/payload"
)

func request(image string) payload.BindRequest {
	return payload.BindRequest{Activation: fmt.Sprintf("bench-%d", os.Getpid()), Image: image, Owner: "bench"}
}

func wish(image string) payload.Wish {
	r := request(image)
	return payload.Wish{Image: r.Image, Owner: r.Owner}
}
