// Closing an nftables socket waits, some 15 ms, until the kernel has freed what any transaction deleted.
#pragma once

namespace keelson::cni {

// Has a child process hold this one's sockets until that is done.
// What was asked of the kernel is done already. Does nothing where a child cannot be had.
void CloseSocketsInChild();

}  // namespace keelson::cni
