#include "kubelet/node/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>

#include "kubelet/node/machine.h"
#include "lib/base/log.h"
#include "lib/base/text.h"

namespace keelson::kubelet {

namespace {

struct Address {
  bool v6 = false;
  in_addr v4{};
  in6_addr six{};
};

std::optional<Address> Parse(const std::string& text) {
  Address out;
  if (::inet_pton(AF_INET, text.c_str(), &out.v4) == 1) return out;
  out.v6 = true;
  if (::inet_pton(AF_INET6, text.c_str(), &out.six) == 1) return out;
  return std::nullopt;
}

std::string Format(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* place = nullptr;
  if (address && address->sa_family == AF_INET) {
    place = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  }
  if (address && address->sa_family == AF_INET6) {
    place = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  return place && ::inet_ntop(address->sa_family, place, text, sizeof(text)) ? text : "";
}

Result<std::vector<std::string>> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return ErrnoError("list the addresses of the machine");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  std::vector<std::string> out;
  for (const ifaddrs* item = list; item; item = item->ifa_next) {
    if (std::string text = Format(item->ifa_addr); !text.empty()) out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::string> Lookup(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  std::vector<std::string> out;
  for (const addrinfo* item = list; item; item = item->ai_next) out.push_back(Format(item->ai_addr));
  return out;
}

// What the name stands for, if it is an address of the machine; of the wanted family, where there is one.
std::string AddressOfName(const std::string& name, bool want_v6) {
  std::string other;
  auto own = OwnAddresses();
  if (!own) return "";
  for (const std::string& ip : Lookup(name)) {
    if (!CheckNodeIp(ip, *own)) continue;
    if (Parse(ip)->v6 == want_v6) return ip;
    if (other.empty()) other = ip;
  }
  return other;
}

}  // namespace

bool IsAddress(const std::string& text) { return Parse(text).has_value(); }
bool IsAnyAddress(const std::string& ip) {
  auto address = Parse(ip);
  return address && (address->v6 ? IN6_IS_ADDR_UNSPECIFIED(&address->six) : address->v4.s_addr == INADDR_ANY);
}

Result<std::vector<std::string>> ParseNodeIps(const std::string& flag) {
  std::vector<std::string> out;
  std::istringstream in(flag);
  for (std::string part; std::getline(in, part, ',');) {
    part = std::string(Trim(part, " \t"));
    if (IsAddress(part)) {
      out.push_back(part);
    } else {
      log::Info("Could not parse node IP. Ignoring", {{"IP", part}});
    }
  }
  const std::string bad = "bad --node-ip \"" + flag + "\": ";
  if (out.size() > 2 || (out.size() == 2 && Parse(out[0])->v6 == Parse(out[1])->v6)) {
    return Error(Code::kInvalid, bad + "must contain either a single IP or a dual-stack pair of IPs");
  }
  if (out.size() == 2 && (IsAnyAddress(out[0]) || IsAnyAddress(out[1]))) {
    return Error(Code::kInvalid, bad + "dual-stack node IP cannot include '0.0.0.0' or '::'");
  }
  return out;
}

Result<> CheckNodeIp(const std::string& ip) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> own, OwnAddresses());
  return CheckNodeIp(ip, own);
}

Result<> CheckNodeIp(const std::string& ip, const std::vector<std::string>& of_machine) {
  const auto address = Parse(ip);
  if (!address) return Error(Code::kInvalid, "nodeIP must be a valid IP address");
  const uint32_t v4 = ntohl(address->v4.s_addr);
  const in6_addr* six = &address->six;
  if (address->v6 ? IN6_IS_ADDR_LOOPBACK(six) : v4 >> 24 == 127) {
    return Error(Code::kInvalid, "nodeIP can't be loopback address");
  }
  if (address->v6 ? IN6_IS_ADDR_MULTICAST(six) : v4 >> 28 == 14) {
    return Error(Code::kInvalid, "nodeIP can't be a multicast address");
  }
  if (address->v6 ? IN6_IS_ADDR_LINKLOCAL(six) : v4 >> 16 == 0xa9fe) {
    return Error(Code::kInvalid, "nodeIP can't be a link-local unicast address");
  }
  if (IsAnyAddress(ip)) return Error(Code::kInvalid, "nodeIP can't be an all zeros address");
  for (const std::string& own : of_machine) {
    const auto other = Parse(own);
    if (!other || other->v6 != address->v6) continue;
    if (address->v6 ? IN6_ARE_ADDR_EQUAL(six, &other->six) : address->v4.s_addr == other->v4.s_addr) {
      return {};
    }
  }
  return Error(Code::kInvalid, "node IP: \"" + ip + "\" not found in the host's network interfaces");
}

std::vector<std::string> ChooseNodeIps(const std::vector<std::string>& given, const std::string& hostname) {
  if (!given.empty() && !IsAnyAddress(given.front())) return given;
  const bool want_v6 = !given.empty() && Parse(given.front())->v6;
  if (IsAddress(hostname)) return {hostname};
  std::string chosen = AddressOfName(hostname, want_v6);
  for (const bool v6 : {want_v6, !want_v6}) {
    if (chosen.empty()) chosen = DefaultAddress(v6);
  }
  return chosen.empty() ? std::vector<std::string>() : std::vector<std::string>{chosen};
}

}  // namespace keelson::kubelet
