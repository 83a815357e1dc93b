module github.com/cloudwit/cloudwit/tests/vcsim

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/vmware/govmomi v0.53.1
)

require golang.org/x/text v0.34.0 // indirect
