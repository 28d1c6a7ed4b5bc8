#include "lib/nft/text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace keelson::nft {
namespace {

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "0x";
  for (unsigned char c : bytes) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string_view NameOf(Type type) {
  switch (type) {
    case Type::kIpv4Addr:
      return "ipv4_addr";
    case Type::kIpv6Addr:
      return "ipv6_addr";
    case Type::kInetProto:
      return "inet_proto";
    case Type::kInetService:
      return "inet_service";
    case Type::kMark:
      return "mark";
    case Type::kIfname:
      return "ifname";
    case Type::kEtherAddr:
      return "ether_addr";
  }
  return "?";
}

std::string_view NameOf(Field field) {
  switch (field) {
    case Field::kIpSaddr:
      return "ip saddr";
    case Field::kIpDaddr:
      return "ip daddr";
    case Field::kIp6Saddr:
      return "ip6 saddr";
    case Field::kIp6Daddr:
      return "ip6 daddr";
    case Field::kL4Proto:
      return "meta l4proto";
    case Field::kSourcePort:
      return "th sport";
    case Field::kDestinationPort:
      return "th dport";
    case Field::kNfProto:
      return "meta nfproto";
    case Field::kMark:
      return "meta mark";
    case Field::kCtState:
      return "ct state";
    case Field::kCtStatus:
      return "ct status";
    case Field::kCtOriginalDaddr:
      return "ct original ip daddr";
    case Field::kCtOriginal6Daddr:
      return "ct original ip6 daddr";
    case Field::kDaddrType:
      return "fib daddr type";
    case Field::kSaddrType:
      return "fib saddr type";
    case Field::kIifName:
      return "meta iifname";
    case Field::kEtherSaddr:
      return "ether saddr";
    case Field::kEtherType:
      return "ether type";
    case Field::kIcmpType:
      return "icmp type";
  }
  return "?";
}

std::string_view NameOf(HookPoint point) {
  static constexpr std::string_view kNames[] = {"prerouting", "input", "forward", "output", "postrouting"};
  return kNames[static_cast<size_t>(point)];
}

std::string Value(Type type, std::string_view bytes) {
  switch (type) {
    case Type::kIpv4Addr:
    case Type::kIpv6Addr:
      return IpAddress::FromBytes(bytes).ToString();
    case Type::kInetProto: {
      auto number = static_cast<uint8_t>(bytes[0]);
      if (number == 6) return "tcp";
      if (number == 17) return "udp";
      return number == 132 ? "sctp" : std::to_string(number);
    }
    case Type::kInetService: {
      uint16_t port;
      std::memcpy(&port, bytes.data(), sizeof port);
      return std::to_string(ntohs(port));
    }
    case Type::kMark: {
      uint32_t mark;
      std::memcpy(&mark, bytes.data(), sizeof mark);
      return std::to_string(mark);
    }
    case Type::kIfname:
      return std::string(bytes.substr(0, bytes.find('\0')));
    case Type::kEtherAddr: {
      std::string out;
      for (char c : bytes) out += (out.empty() ? "" : ":") + Hex({&c, 1}).substr(2);
      return out;
    }
  }
  return Hex(bytes);
}

std::string Values(const std::vector<Type>& types, std::string_view bytes) {
  if (types.empty() || bytes.size() != WidthOf(types)) return Hex(bytes);
  std::string out;
  for (Type type : types) {
    size_t size = SizeOf(type);
    if (!out.empty()) out += " . ";
    out += Value(type, bytes.substr(0, size));
    bytes.remove_prefix(std::min(bytes.size(), (size + 3) / 4 * 4));
  }
  return out;
}

std::string Types(const std::vector<Type>& types) {
  std::string out;
  for (Type type : types) out += (out.empty() ? "" : " . ") + std::string(NameOf(type));
  return out;
}

std::string R(int reg) { return "r" + std::to_string(reg); }

struct ExprText {
  std::string operator()(const expr::Load& e) const {
    return R(e.reg) + " = " + std::string(NameOf(e.field));
  }
  std::string operator()(const expr::Random& e) const {
    std::string out = R(e.reg) + " = numgen random mod " + std::to_string(e.modulus);
    return e.offset ? out + " offset " + std::to_string(e.offset) : out;
  }
  std::string operator()(const expr::Compare& e) const {
    return R(e.reg) + (e.equal ? " == " : " != ") + Hex(e.value);
  }
  std::string operator()(const expr::Mask& e) const {
    return R(e.reg) + " = " + R(e.reg) + " & " + Hex(e.mask) + " ^ " + Hex(e.xor_with);
  }
  std::string operator()(const expr::Immediate& e) const { return R(e.reg) + " = " + Hex(e.value); }
  std::string operator()(const expr::Lookup& e) const {
    return R(e.key) + (e.negate ? " not in @" : " in @") + e.set;
  }
  std::string operator()(const expr::Map& e) const {
    return R(e.out) + " = @" + e.set + "[" + R(e.key) + "]";
  }
  std::string operator()(const expr::VerdictMap& e) const {
    return "verdict @" + e.set + "[" + R(e.key) + "]";
  }
  std::string operator()(const expr::SetMark& e) const { return "meta mark = " + R(e.reg); }
  std::string operator()(const expr::SetEtherDaddr& e) const { return "ether daddr = " + R(e.reg); }
  std::string operator()(const expr::SetPacketType& e) const { return "meta pkttype = " + R(e.reg); }
  std::string operator()(const expr::Update& e) const {
    return "update @" + e.set + "[" + R(e.key) + "] timeout " + std::to_string(e.timeout.count()) + "ms";
  }
  std::string operator()(const expr::Forget& e) const { return "delete @" + e.set + "[" + R(e.key) + "]"; }
  std::string operator()(const expr::Dnat& e) const { return "dnat " + R(e.address) + " port " + R(e.port); }
  std::string operator()(const expr::Masquerade& e) const {
    return e.first < 0 ? "masquerade fully-random"
                       : "masquerade to ports " + R(e.first) + " to " + R(e.last) + " fully-random";
  }
  std::string operator()(const expr::Reject& e) const {
    return e.tcp_reset ? "reject with tcp reset" : "reject with port-unreachable";
  }
  std::string operator()(const expr::Finish& e) const { return ToText(e.verdict); }
  std::string operator()(const expr::Counter&) const { return "counter"; }
  std::string operator()(const expr::Limit& e) const {
    return "limit rate " + std::to_string(e.per_second) + "/second burst " + std::to_string(e.burst);
  }
  std::string operator()(const expr::Log& e) const {
    return "log prefix \"" + e.prefix + "\" group " + std::to_string(e.group);
  }
};

std::string Elements(const Set& set, const std::vector<Element>& elements) {
  std::string out = "{ ";
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i) out += ", ";
    out += ToText(set, elements[i]);
  }
  return out + " }";
}

struct OpText {
  std::string operator()(const op::AddTable&) const { return "add table"; }
  std::string operator()(const op::DeleteTable&) const { return "delete table"; }
  std::string operator()(const op::AddChain& o) const {
    std::string out = (o.exclusive ? "create chain " : "add chain ") + o.chain.name;
    if (!o.chain.hook) return out;
    return out + " { type " + (o.chain.hook->type == HookType::kNat ? "nat" : "filter") + " hook " +
           std::string(NameOf(o.chain.hook->point)) + " priority " + std::to_string(o.chain.hook->priority) +
           " }";
  }
  std::string operator()(const op::DeleteChain& o) const { return "delete chain " + o.name; }
  std::string operator()(const op::FlushChain& o) const { return "flush chain " + o.name; }
  std::string operator()(const op::AddRule& o) const {
    return "add rule " + o.rule.chain() + " " + ToText(o.rule);
  }
  std::string operator()(const op::DeleteRule& o) const {
    return "delete rule " + o.chain + " handle " + std::to_string(o.handle);
  }
  std::string operator()(const op::AddSet& o) const { return "add " + ToText(o.set); }
  std::string operator()(const op::DeleteSet& o) const { return "delete set " + o.name; }
  std::string operator()(const op::AddElements& o) const {
    return (o.exclusive ? "create element " : "add element ") + o.set.name + " " +
           Elements(o.set, o.elements);
  }
  std::string operator()(const op::DeleteElements& o) const {
    return "delete element " + o.set.name + " " + Elements(o.set, o.elements);
  }
};

}  // namespace

std::string ToText(const Table& table) {
  std::string_view family = table.family == Family::kInet     ? "inet"
                            : table.family == Family::kIpv4   ? "ip"
                            : table.family == Family::kBridge ? "bridge"
                                                              : "ip6";
  return "table " + std::string(family) + " " + table.name;
}

std::string ToText(const std::vector<Expr>& exprs) {
  std::string out;
  for (const Expr& expr : exprs) out += (out.empty() ? "" : "; ") + std::visit(ExprText(), expr);
  return out;
}

std::string ToText(const Rule& rule) { return ToText(rule.exprs()); }

std::string ToText(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::kAccept:
      return "accept";
    case Verdict::Kind::kDrop:
      return "drop";
    case Verdict::Kind::kReturn:
      return "return";
    case Verdict::Kind::kJump:
      return "jump " + verdict.chain;
    case Verdict::Kind::kGoto:
      return "goto " + verdict.chain;
  }
  return "?";
}

std::string ToText(const Set& set) {
  std::string out = (set.IsMap() ? "map " : "set ") + set.name + " { type " + Types(set.key);
  if (set.verdicts) out += " : verdict";
  if (!set.data.empty()) out += " : " + Types(set.data);
  std::string flags;
  auto flag = [&](bool on, const char* name) {
    if (on) flags += (flags.empty() ? "; flags " : ",") + std::string(name);
  };
  flag(set.interval, "interval");
  flag(set.dynamic, "dynamic");
  flag(set.timeout.count() > 0, "timeout");
  out += flags;
  if (set.timeout.count() > 0) out += "; timeout " + std::to_string(set.timeout.count()) + "ms";
  return out + " }";
}

std::string ToText(const Set& set, const Element& element) {
  std::string out = Values(set.key, element.key);
  if (!element.key_end.empty()) out += "-" + Values(set.key, element.key_end);
  if (element.verdict) out += " : " + ToText(*element.verdict);
  if (!element.data.empty()) out += " : " + Values(set.data, element.data);
  if (!element.comment.empty()) out += " comment \"" + element.comment + "\"";
  return out;
}

std::string ToText(const Ruleset& ruleset) {
  std::string out = ToText(ruleset.table) + " {\n";
  for (const auto& [name, contents] : ruleset.sets) {
    out += "  " + ToText(contents.set) + "\n";
    std::vector<std::pair<std::string, std::string>> lines;  // by key bytes, which sort like numbers
    for (const auto& [key, element] : contents.elements) {
      lines.emplace_back(key, ToText(contents.set, element));
    }
    std::sort(lines.begin(), lines.end());
    for (const auto& [key, line] : lines) out += "    " + line + "\n";
  }
  for (const auto& [name, contents] : ruleset.chains) {
    out += "  " + ToText(Op(op::AddChain{contents.chain, false})).substr(4) + "\n";
    for (const Rule& rule : contents.rules) {
      out += "    " + (rule.exprs().empty() ? "# " + rule.Fingerprint() : ToText(rule)) + "\n";
    }
  }
  return out + "}\n";
}

std::string ToText(const Op& op) { return std::visit(OpText(), op); }

std::string ToText(const Transaction& transaction) {
  std::string out = ToText(transaction.table()) + "\n";
  for (const Op& op : transaction.ops()) out += ToText(op) + "\n";
  return out;
}

}  // namespace keelson::nft
