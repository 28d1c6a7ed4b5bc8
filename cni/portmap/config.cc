#include "cni/portmap/config.h"

#include <netinet/in.h>

#include <algorithm>

#include "cni/lib/json.h"
#include "lib/base/text.h"

namespace keelson::cni {
namespace {

using boost::json::object;

CniError Bad(std::string message) { return {kInvalidConfig, std::move(message), ""}; }

Outcome<uint8_t> ParseProtocol(std::string text) {
  text = Lower(text);
  if (text.empty() || text == "tcp") return uint8_t{IPPROTO_TCP};
  if (text == "udp") return uint8_t{IPPROTO_UDP};
  if (text == "sctp") return uint8_t{IPPROTO_SCTP};
  return Bad("unsupported protocol in portMappings: " + text);
}

Outcome<uint16_t> ReadPort(const object& json, const char* field, const std::string& what) {
  KEELSON_ASSIGN_OR_RETURN(int port, GetInt(json, field));
  if (port <= 0 || port > 65535) return Bad("Invalid " + what + " port number: " + std::to_string(port));
  return static_cast<uint16_t>(port);
}

Outcome<Mapping> ParseMapping(const object& json) {
  Mapping out;
  KEELSON_ASSIGN_OR_RETURN(out.container_port, ReadPort(json, "containerPort", "container"));
  KEELSON_ASSIGN_OR_RETURN(out.host_port, ReadPort(json, "hostPort", "host"));
  KEELSON_ASSIGN_OR_RETURN(std::string protocol, GetString(json, "protocol"));
  KEELSON_ASSIGN_OR_RETURN(out.protocol, ParseProtocol(protocol));
  KEELSON_ASSIGN_OR_RETURN(std::string host_ip, GetString(json, "hostIP"));
  if (!host_ip.empty()) {
    KEELSON_ASSIGN_OR_RETURN(out.host_ip, IpAddress::Parse(host_ip));
  }
  return out;
}

// Accepts the syntax of iptables(8) ("!", "-d", "192.0.2.0/24") and nft(8) ("ip", "daddr", "!=",
// "192.0.2.0/24").
class ConditionParser {
 public:
  ConditionParser(const std::vector<std::string>& words, bool v4) : v4_(v4) {
    for (const std::string& text : words) {
      for (size_t begin = 0; begin < text.size();) {
        size_t end = std::min(text.find(' ', begin), text.size());
        if (end > begin) words_.push_back(text.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }

  Outcome<std::vector<Condition>> Run() {
    std::vector<Condition> out;
    while (at_ < words_.size()) {
      bool negated = Take("!");
      Condition condition{Condition::Subject::kSource};
      (void)Take(v4_ ? "ip" : "ip6");
      if (!TakeSubject(condition.subject)) return Unknown();
      negated = Take("!=") || Take("!") || negated;
      if (!negated) (void)Take("==");
      condition.negated = negated;
      if (at_ == words_.size()) return Bad("a condition ends early: " + words_.back());
      KEELSON_RETURN_IF_ERROR(TakeValue(condition));
      out.push_back(std::move(condition));
    }
    return out;
  }

 private:
  bool Take(std::string_view word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  bool TakeSubject(Condition::Subject& subject) {
    static constexpr struct {
      std::string_view word;
      Condition::Subject subject;
    } kWords[] = {
        {"-s", Condition::Subject::kSource},         {"--source", Condition::Subject::kSource},
        {"--src", Condition::Subject::kSource},      {"saddr", Condition::Subject::kSource},
        {"-d", Condition::Subject::kDestination},    {"--destination", Condition::Subject::kDestination},
        {"--dst", Condition::Subject::kDestination}, {"daddr", Condition::Subject::kDestination},
        {"-i", Condition::Subject::kInterface},      {"--in-interface", Condition::Subject::kInterface},
        {"iifname", Condition::Subject::kInterface}};
    for (const auto& row : kWords) {
      if (!Take(row.word)) continue;
      subject = row.subject;
      return true;
    }
    return false;
  }
  Outcome<> TakeValue(Condition& condition) {
    const std::string& value = words_[at_++];
    if (condition.subject == Condition::Subject::kInterface) {
      condition.interface = value;
      if (!value.empty() && value.size() < 16 && value.find('+') == std::string::npos) return {};
      return Bad("invalid interface in a condition: " + value);
    }
    if (value.find('/') != std::string::npos) {
      KEELSON_ASSIGN_OR_RETURN(condition.prefix, IpPrefix::Parse(value));
    } else {
      KEELSON_ASSIGN_OR_RETURN(IpAddress address, IpAddress::Parse(value));
      condition.prefix = IpPrefix::Host(address);
    }
    if (condition.prefix.is_v4() != v4_) return Bad("a condition of the other address family: " + value);
    return {};
  }
  CniError Unknown() const {
    return {kUnsupportedField,
            "unsupported condition: " + (at_ < words_.size() ? words_[at_] : words_.back()),
            "known are -s, -d, -i (iptables) and saddr, daddr, iifname (nft), each with ! or !="};
  }

  bool v4_;
  std::vector<std::string> words_;
  size_t at_ = 0;
};

Outcome<std::vector<Condition>> ReadConditions(const object& config, const char* field, bool v4) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> words, GetStrings(config, field));
  return ConditionParser(words, v4).Run();
}

}  // namespace

std::string Condition::ToString() const {
  static constexpr const char* kNames[] = {"saddr", "daddr", "iifname"};
  return std::string(kNames[static_cast<int>(subject)]) + (negated ? " != " : " == ") +
         (subject == Subject::kInterface ? interface : prefix.Masked().ToString());
}

Outcome<PortmapConfig> ReadPortmapConfig(const Request& request) {
  const object& config = request.config;
  PortmapConfig out;
  KEELSON_ASSIGN_OR_RETURN(out.snat, GetBool(config, "snat", true));
  KEELSON_ASSIGN_OR_RETURN(out.masq_all, GetBool(config, "masqAll"));
  KEELSON_ASSIGN_OR_RETURN(std::string chain, GetString(config, "externalSetMarkChain"));
  if (!chain.empty()) {
    return CniError{kUnsupportedField, "unsupported field externalSetMarkChain",
                    "the mappings are in nftables, which cannot jump into chains of iptables"};
  }
  KEELSON_ASSIGN_OR_RETURN(out.mark_bit, GetInt(config, "markMasqBit", 13));
  if (out.mark_bit < 0 || out.mark_bit > 31) return Bad("MasqMarkBit must be between 0 and 31");
  KEELSON_ASSIGN_OR_RETURN(out.conditions_v4, ReadConditions(config, "conditionsV4", true));
  KEELSON_ASSIGN_OR_RETURN(out.conditions_v6, ReadConditions(config, "conditionsV6", false));
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(config));
  if (!runtime) return out;
  KEELSON_ASSIGN_OR_RETURN(auto mappings, GetObjects(*runtime, "portMappings"));
  for (const object* item : mappings) {
    KEELSON_ASSIGN_OR_RETURN(Mapping mapping, ParseMapping(*item));
    out.mappings.push_back(mapping);
  }
  return out;
}

ContainerAddresses FindAddresses(const AddResult& result, const std::string& ifname) {
  ContainerAddresses out;
  for (const IpConfig& ip : result.ips) {
    auto& slot = ip.address.is_v4() ? out.v4 : out.v6;
    if (slot) continue;
    if (ip.interface && static_cast<size_t>(*ip.interface) < result.interfaces.size()) {
      const Interface& interface = result.interfaces[static_cast<size_t>(*ip.interface)];
      if (interface.name != ifname || interface.sandbox.empty()) continue;
    }
    slot = ip.address.address();
  }
  return out;
}

}  // namespace keelson::cni
