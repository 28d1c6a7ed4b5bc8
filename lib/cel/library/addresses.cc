// IP addresses and CIDRs: Go's net/netip, without zones and IPv4-mapped IPv6 addresses.
#include <fmt/format.h>

#include "lib/base/ip.h"
#include "lib/base/json_quote.h"
#include "lib/cel/library/go_address.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/opaque.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

class IpValue : public OpaqueOf<IpAddress, types::kIp> {
 public:
  using OpaqueOf::OpaqueOf;
  uint64_t CostSize() const override { return value.bytes().size(); }
};

class CidrValue : public OpaqueOf<IpPrefix, types::kCidr> {
 public:
  using OpaqueOf::OpaqueOf;
  uint64_t CostSize() const override { return value.address().bytes().size(); }
};

const IpAddress& IpOf(const Value& value) { return static_cast<const IpValue&>(value.opaque()).value; }
const IpPrefix& CidrOf(const Value& value) { return static_cast<const CidrValue&>(value.opaque()).value; }

bool IsMapped(const IpAddress& address) {
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  return address.is_v6() && address.bytes().starts_with(kMapped);
}

Result<IpAddress> ParseIp(std::string_view text) {
  if (text.find('%') != std::string_view::npos && text.find(':') != std::string_view::npos) {
    return Error(Code::kBadRequest, fmt::format("IP address \"{}\" with zone value is not allowed", text));
  }
  auto address = IpAddress::Parse(text);
  if (!address) {
    return Error(Code::kBadRequest, fmt::format("IP Address {} parse error during conversion from string: {}",
                                                JsonQuoted(text), WhyNoAddress(text)));
  }
  if (IsMapped(*address)) {
    return Error(Code::kBadRequest, fmt::format("IPv4-mapped IPv6 address \"{}\" is not allowed", text));
  }
  return *address;
}

Result<IpPrefix> ParseCidr(std::string_view text) {
  size_t slash = text.rfind('/');
  auto fail = [&](std::string_view why) {
    return Error(
        Code::kBadRequest,
        fmt::format(
            "network address parse error during conversion from string: netip.ParsePrefix(\"{}\"): {}", text,
            why));
  };
  if (slash == std::string_view::npos) return fail("no '/'");
  if (text.find('%') != std::string_view::npos) return fail("IPv6 zones cannot be present in a prefix");
  const std::string_view address = text.substr(0, slash), bits = text.substr(slash + 1);
  if (!IpAddress::Parse(address)) return fail(WhyNoAddress(address));
  const bool number = !bits.empty() && bits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number || (bits.size() > 1 && bits[0] == '0')) {
    return fail("bad bits after slash: " + JsonQuoted(bits));
  }
  auto prefix = IpPrefix::Parse(text);
  if (!prefix) return fail("prefix length out of range");
  if (IsMapped(prefix->address())) {
    return Error(Code::kBadRequest, fmt::format("IPv4-mapped IPv6 address \"{}\" is not allowed", text));
  }
  return *prefix;
}

Value Failed(const Error& error, Arena& arena) { return Value::Error(error.message(), arena); }

Value ToIp(Args args, Arena& arena) {
  auto address = ParseIp(args[0].text());
  return address ? Value::Opaque(arena.New<IpValue>(*address)) : Failed(address.error(), arena);
}

Value IsIp(Args args, Arena&) { return Value::Bool(ParseIp(args[0].text()).has_value()); }

Value IsCanonical(Args args, Arena& arena) {
  auto address = ParseIp(args[0].text());
  return address ? Value::Bool(address->ToString() == args[0].text()) : Failed(address.error(), arena);
}

Value Family(Args args, Arena&) { return Value::Int(IpOf(args[0]).is_v4() ? 4 : 6); }
Value IpText(Args args, Arena& arena) { return Value::String(arena.Copy(IpOf(args[0]).ToString())); }
Value IsUnspecified(Args args, Arena&) { return Value::Bool(IpOf(args[0]).IsUnspecified()); }
Value IsLoopback(Args args, Arena&) { return Value::Bool(IpOf(args[0]).IsLoopback()); }
Value IsLinkLocalUnicast(Args args, Arena&) { return Value::Bool(IpOf(args[0]).IsLinkLocal()); }

Value IsLinkLocalMulticast(Args args, Arena&) {
  const IpAddress& address = IpOf(args[0]);
  std::string_view bytes = address.bytes();
  if (address.is_v4()) return Value::Bool(bytes.starts_with(std::string_view("\xe0\0\0", 3)));
  return Value::Bool(bytes[0] == '\xff' && (bytes[1] & 0x0F) == 2);
}

Value IsGlobalUnicast(Args args, Arena&) {
  const IpAddress& address = IpOf(args[0]);
  bool broadcast = address.bytes() == "\xff\xff\xff\xff";
  return Value::Bool(!broadcast && !address.IsUnspecified() && !address.IsLoopback() &&
                     !address.IsMulticast() && !address.IsLinkLocal());
}

Value ToCidr(Args args, Arena& arena) {
  auto prefix = ParseCidr(args[0].text());
  return prefix ? Value::Opaque(arena.New<CidrValue>(*prefix)) : Failed(prefix.error(), arena);
}

Value IsCidr(Args args, Arena&) { return Value::Bool(ParseCidr(args[0].text()).has_value()); }

bool Covers(const IpPrefix& prefix, const IpAddress& address) {
  return prefix.is_v4() == address.is_v4() && prefix.Contains(address);
}

Value ContainsIp(Args args, Arena& arena) {
  if (!args[1].Is(ValueKind::kString)) return Value::Bool(Covers(CidrOf(args[0]), IpOf(args[1])));
  auto address = ParseIp(args[1].text());
  return address ? Value::Bool(Covers(CidrOf(args[0]), *address)) : Failed(address.error(), arena);
}

bool CoversPrefix(const IpPrefix& outer, const IpPrefix& inner) {
  return outer.length() <= inner.length() && Covers(outer, inner.address());
}

Value ContainsCidr(Args args, Arena& arena) {
  if (!args[1].Is(ValueKind::kString)) return Value::Bool(CoversPrefix(CidrOf(args[0]), CidrOf(args[1])));
  auto prefix = ParseCidr(args[1].text());
  return prefix ? Value::Bool(CoversPrefix(CidrOf(args[0]), *prefix)) : Failed(prefix.error(), arena);
}

Value CidrIp(Args args, Arena& arena) { return Value::Opaque(arena.New<IpValue>(CidrOf(args[0]).address())); }
Value PrefixLength(Args args, Arena&) { return Value::Int(CidrOf(args[0]).length()); }
Value Masked(Args args, Arena& arena) {
  return Value::Opaque(arena.New<CidrValue>(CidrOf(args[0]).Masked()));
}
Value CidrText(Args args, Arena& arena) { return Value::String(arena.Copy(CidrOf(args[0]).ToString())); }

constexpr CostRule kOneEach = CostRule::kNominal;

const FunctionRow kIpRows[] = {
    {"ip", "string_to_ip", "", "string", "net.IP", 30, ToIp, CostRule::kParse},
    {"family", "ip_family", "net.IP", "", "int", 30, Family, kOneEach},
    {"ip.isCanonical", "ip_is_canonical", "", "string", "bool", 30, IsCanonical, CostRule::kParseTwice},
    {"isUnspecified", "ip_is_unspecified", "net.IP", "", "bool", 30, IsUnspecified, kOneEach},
    {"isLoopback", "ip_is_loopback", "net.IP", "", "bool", 30, IsLoopback, kOneEach},
    {"isLinkLocalMulticast", "ip_is_link_local_multicast", "net.IP", "", "bool", 30, IsLinkLocalMulticast,
     kOneEach},
    {"isLinkLocalUnicast", "ip_is_link_local_unicast", "net.IP", "", "bool", 30, IsLinkLocalUnicast,
     kOneEach},
    {"isGlobalUnicast", "ip_is_global_unicast", "net.IP", "", "bool", 30, IsGlobalUnicast, kOneEach},
    {"isIP", "is_ip", "", "string", "bool", 30, IsIp, CostRule::kParse},
    {"string", "ip_to_string", "", "net.IP", "string", 30, IpText},
};

const FunctionRow kCidrRows[] = {
    {"cidr", "string_to_cidr", "", "string", "net.CIDR", 30, ToCidr, CostRule::kParse},
    {"containsIP", "cidr_contains_ip_string", "net.CIDR", "string", "bool", 30, ContainsIp,
     CostRule::kContainsIp},
    {"containsIP", "cidr_contains_ip_ip", "net.CIDR", "net.IP", "bool", 30, ContainsIp,
     CostRule::kContainsIp},
    {"containsCIDR", "cidr_contains_cidr_string", "net.CIDR", "string", "bool", 30, ContainsCidr,
     CostRule::kContainsCidr},
    {"containsCIDR", "cidr_contains_cidr", "net.CIDR", "net.CIDR", "bool", 30, ContainsCidr,
     CostRule::kContainsCidr},
    {"ip", "cidr_ip", "net.CIDR", "", "net.IP", 30, CidrIp, kOneEach},
    {"prefixLength", "cidr_prefix_length", "net.CIDR", "", "int", 30, PrefixLength, kOneEach},
    {"masked", "cidr_masked", "net.CIDR", "", "net.CIDR", 30, Masked, kOneEach},
    {"isCIDR", "is_cidr", "", "string", "bool", 30, IsCidr, CostRule::kParse},
    {"string", "cidr_to_string", "", "net.CIDR", "string", 30, CidrText},
};

}  // namespace

std::span<const FunctionRow> IpFunctions() { return kIpRows; }
std::span<const FunctionRow> CidrFunctions() { return kCidrRows; }

}  // namespace keelson::cel
