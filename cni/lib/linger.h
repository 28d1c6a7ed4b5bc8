// Closing an nftables socket waits about 15 ms for the kernel to free what any transaction deleted.
#pragma once

namespace keelson::cni {

// Lets a child process hold this process's sockets until the kernel is done, so that the caller need not
// wait. The requested changes are already made. Does nothing if fork fails.
void CloseSocketsInChild();

}  // namespace keelson::cni
