#include "proxy/dns/cluster_dns_options.h"

#include <charconv>

#include "lib/base/text.h"
#include "proxy/dns/message/name.h"

namespace keelson::proxy::dns {
namespace {

// "10.0.0.53", "10.0.0.53:5353", "fd00::53", "[fd00::53]:5353"
Result<Listen> ParseServer(std::string_view text) {
  Listen out;
  size_t colon = text.rfind(':');
  bool bracketed = text.starts_with('[');
  bool has_port =
      colon != std::string_view::npos && (bracketed ? text[colon - 1] == ']' : text.find(':') == colon);
  if (has_port) {
    std::string_view port = text.substr(colon + 1);
    auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc() || end != port.data() + port.size() || out.port == 0) {
      return Error(Code::kInvalid, "invalid port: " + std::string(text));
    }
    text = text.substr(0, colon);
  }
  if (bracketed && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  KEELSON_ASSIGN_OR_RETURN(out.ip, IpAddress::Parse(text));
  return out;
}

}  // namespace

Result<std::vector<IpAddress>> ParseDnsAddresses(std::string_view text) {
  std::vector<IpAddress> out;
  for (std::string_view part : Split(text, ',')) {
    KEELSON_ASSIGN_OR_RETURN(IpAddress ip, IpAddress::Parse(part));
    if (ip.IsUnspecified() || ip.IsMulticast()) {
      return Error(Code::kInvalid, "not an address to answer on: " + ip.ToString());
    }
    for (const IpAddress& other : out) {
      if (other.is_v4() == ip.is_v4()) {
        return Error(Code::kInvalid, "more than one address of a family: " + std::string(text));
      }
    }
    out.push_back(ip);
  }
  return out;
}

Result<StubDomain> ParseStubDomain(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Error(Code::kInvalid, "stub domain \"" + std::string(text) + "\": want DOMAIN=SERVER[,SERVER...]");
  }
  StubDomain out{std::string(text.substr(0, equals)), {}};
  KEELSON_RETURN_IF_ERROR(ParseName(out.first));
  for (std::string_view part : Split(text.substr(equals + 1), ',')) {
    KEELSON_ASSIGN_OR_RETURN(Listen server, ParseServer(part));
    out.second.push_back(server);
  }
  return out;
}

}  // namespace keelson::proxy::dns
