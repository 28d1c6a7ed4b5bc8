// The node's addresses, from --node-ip or detected.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// Parses --node-ip: empty, one address, or one of each family; all zeros stand for any address of the family.
// Ignores parts that are not addresses, as upstream does. kInvalid, with upstream's message.
Result<std::vector<std::string>> ParseNodeIps(const std::string& flag);
// "0.0.0.0" or "::".
bool IsAnyAddress(const std::string& ip);
bool IsAddress(const std::string& text);

// kInvalid, with upstream's message: `ip` is no address of the machine (`of_machine`), or none that can be a node's.
Result<> CheckNodeIp(const std::string& ip);
Result<> CheckNodeIp(const std::string& ip, const std::vector<std::string>& of_machine);

// The node's addresses, the primary one first; empty: none found. Without `given` ones it may ask the resolver for
// `hostname`, and block.
std::vector<std::string> ChooseNodeIps(const std::vector<std::string>& given, const std::string& hostname);

}  // namespace keelson::kubelet
