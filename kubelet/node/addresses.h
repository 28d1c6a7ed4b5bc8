// The addresses that a node has, by --node-ip or by itself.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// What --node-ip may hold: nothing, an address, or one of each family; all zeros stand for any address of the
// family. Parts that are no addresses are left out, as upstream does. kInvalid in its words.
Result<std::vector<std::string>> ParseNodeIps(const std::string& flag);
// "0.0.0.0" or "::".
bool IsAnyAddress(const std::string& ip);
bool IsAddress(const std::string& text);

// Whether the machine can be reached at `ip`; kInvalid in upstream's words.
Result<> CheckNodeIp(const std::string& ip);
Result<> CheckNodeIp(const std::string& ip, const std::vector<std::string>& of_machine);

// The node's addresses, the primary one first; empty: none can be found. Asks the resolver for `name` where
// nothing else is told: may block.
std::vector<std::string> ChooseNodeIps(const std::vector<std::string>& given, const std::string& hostname);

}  // namespace keelson::kubelet
