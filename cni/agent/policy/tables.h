// The tables keelson-policy in the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/netlink/socket.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

// How often a write is tried while plugins change the tables at the same time.
inline constexpr int kWriteAttempts = 10;
// Somebody else changed one of the elements first.
inline bool IsRace(const Error& error) { return error.Is(Code::kAlreadyExists) || error.Is(Code::kNotFound); }

// The MAC address of the bridge; nullopt: there is none yet.
Result<std::optional<std::string>> BridgeMac(netlink::Socket& socket, const std::string& bridge);
// Brings the bridge table up to the ports of `bridge`; true if it wrote, in one transaction.
Result<bool> SyncPorts(nft::Kernel& kernel, netlink::Socket& socket, const std::string& bridge);

// kUnimplemented when this kernel cannot log packets to nfnetlink_log groups.
Result<> CheckPolicyLog(nft::Kernel& kernel, uint16_t group);

// Removes both tables; absent is fine.
Result<> RemovePolicyTables(nft::Kernel& kernel);

}  // namespace keelson::cni::agent
