#include <cstring>
#include <optional>

#include "lib/nft/text.h"
#include "lib/nft/trace_values_internal.h"
#include "lib/nft/trace_walk_internal.h"

namespace keelson::nft {
namespace {

constexpr size_t kMaxDepth = 16;  // NFT_JUMP_STACK_SIZE

// One packet on its way through the chains of one table; copied where ways part.
struct Way {
  TraceOutcome outcome;
  Registers registers;
  struct Frame {
    const std::vector<Program>* rules;
    size_t at, said;  // where to go on, and how many steps there were when the jump was made
  };
  std::vector<Frame> returns;
  std::vector<std::string> chains;  // names, innermost last
  size_t said_before_rule = 0;
};

class Walk {
 public:
  Walk(const LiveTable& table, const AddressTypeOf& address_type)
      : table_(table), address_type_(address_type) {}

  std::vector<TraceOutcome> Run(const std::string& chain, TraceOutcome outcome) {
    Way way{.outcome = std::move(outcome)};
    way.chains.push_back(chain);
    auto rules = table_.programs.find(chain);
    if (rules != table_.programs.end()) {
      Rules(std::move(way), rules->second, 0);
    } else {
      Done(std::move(way));
    }
    return std::move(out_);
  }

 private:
  void Done(Way way) { out_.push_back(std::move(way.outcome)); }

  std::string Place(const Way& way) const {
    return ToText(table_.contents.table).substr(std::string_view("table ").size()) + " " + way.chains.back();
  }
  void Say(Way& way, std::string what) const { way.outcome.steps.push_back({Place(way), std::move(what)}); }

  // The chain's rules from `at` on.
  void Rules(Way way, const std::vector<Program>& rules, size_t at) {
    for (; at < rules.size(); ++at) {
      way.registers.Clear();
      way.said_before_rule = way.outcome.steps.size();
      if (!Rule(way, rules, at, 0)) return;
    }
    Return(std::move(way));
  }

  void Return(Way way) {
    if (way.returns.empty()) return Done(std::move(way));
    Way::Frame back = way.returns.back();
    way.returns.pop_back();
    way.chains.pop_back();
    // Where nothing has happened nobody needs to know of.
    if (way.outcome.steps.size() == back.said) way.outcome.steps.pop_back();
    Rules(std::move(way), *back.rules, back.at);
  }

  void Enter(Way way, const Verdict& verdict, const std::vector<Program>& rules, size_t at) {
    static const std::vector<Program> kNoRules;
    Say(way, ToText(verdict));
    if (verdict.kind == Verdict::Kind::kGoto) {
      way.chains.back() = verdict.chain;
    } else {
      way.returns.push_back({&rules, at + 1, way.outcome.steps.size()});
      way.chains.push_back(verdict.chain);
    }
    if (way.returns.size() > kMaxDepth) return Done(std::move(way));
    auto next = table_.programs.find(verdict.chain);
    Rules(std::move(way), next == table_.programs.end() ? kNoRules : next->second, 0);
  }

  void Apply(Way way, const Verdict& verdict, const std::vector<Program>& rules, size_t at) {
    switch (verdict.kind) {
      case Verdict::Kind::kDrop:
        way.outcome.end = TraceOutcome::kDropped;
        [[fallthrough]];
      case Verdict::Kind::kAccept:
        Say(way, ToText(verdict));
        return Done(std::move(way));
      case Verdict::Kind::kReturn:
        return Return(std::move(way));
      case Verdict::Kind::kJump:
      case Verdict::Kind::kGoto:
        return Enter(std::move(way), verdict, rules, at);
    }
  }

  enum class Next { kExpr, kRule, kEnded };

  // The rule's expressions from `from` on. False: the way has ended, or gone on elsewhere.
  bool Rule(Way& way, const std::vector<Program>& rules, size_t at, size_t from) {
    const Program& rule = rules[at];
    for (size_t i = from; i < rule.exprs.size(); ++i) {
      const Expr& expr = rule.exprs[i];
      if (auto* random = std::get_if<expr::Random>(&expr)) {
        Draw(way, *random, rules, at, i + 1);
        return false;
      }
      if (auto* finish = std::get_if<expr::Finish>(&expr)) {
        Apply(std::move(way), finish->verdict, rules, at);
        return false;
      }
      if (auto* map = std::get_if<expr::VerdictMap>(&expr)) {
        const Element* found = Find(way, map->key, map->set);
        if (!found || !found->verdict) return NoMatch(way);
        Say(way, "is in @" + map->set);
        Apply(std::move(way), *found->verdict, rules, at);
        return false;
      }
      Next next = std::visit([&](const auto& x) { return On(x, way); }, expr);
      if (next == Next::kEnded) return false;
      if (next == Next::kRule) return NoMatch(way);
    }
    if (!rule.not_understood.empty()) {
      way.outcome.not_understood.push_back(Place(way) + ": " + rule.not_understood);
      return NoMatch(way);
    }
    return true;
  }

  void Draw(const Way& way, const expr::Random& random, const std::vector<Program>& rules, size_t at,
            size_t from) {
    // Whichever number led nowhere, what follows is the same.
    std::optional<Way> missed;
    for (uint32_t n = 0; n < random.modulus; ++n) {
      Way branch = way;
      branch.registers.Put(random.reg, Key().Mark(random.offset + n).bytes());
      if (Rule(branch, rules, at, from) && !missed) missed = std::move(branch);
    }
    if (missed) Rules(std::move(*missed), rules, at + 1);
  }

  // What was said of this rule is of no interest.
  static bool NoMatch(Way& way) {
    way.outcome.steps.resize(way.said_before_rule);
    return true;
  }

  // ---- one expression each ----
  static Next If(bool matches) { return matches ? Next::kExpr : Next::kRule; }

  Next On(const expr::Load& x, Way& way) {
    way.registers.Put(x.reg, FieldBytes(x.field, way.outcome.packet, address_type_));
    return Next::kExpr;
  }
  // Renewed or counted is not of interest here; verdicts and numbers are followed by Rule().
  template <typename T>
  Next On(const T&, Way&) {
    return Next::kExpr;
  }
  Next On(const expr::Compare& x, Way& way) {
    return If((way.registers.Get(x.reg, x.value.size()) == x.value) == x.equal);
  }
  Next On(const expr::Mask& x, Way& way) {
    std::string bytes(way.registers.Get(x.reg, x.mask.size()));
    for (size_t i = 0; i < bytes.size() && i < x.xor_with.size(); ++i) {
      bytes[i] = static_cast<char>((bytes[i] & x.mask[i]) ^ x.xor_with[i]);
    }
    way.registers.Put(x.reg, bytes);
    return Next::kExpr;
  }
  Next On(const expr::Immediate& x, Way& way) {
    way.registers.Put(x.reg, x.value);
    return Next::kExpr;
  }
  const Element* Find(Way& way, int key, const std::string& name) const {
    auto set = table_.contents.sets.find(name);
    const Set* shape = set == table_.contents.sets.end() ? nullptr : &set->second.set;
    // Ranges of a single value are kept in another way; other programs' types have no name here.
    if (!shape || shape->key.empty() || (shape->interval && shape->key.size() == 1)) {
      way.outcome.not_understood.push_back(Place(way) + ": @" + name);
      return nullptr;
    }
    return FindElement(set->second, way.registers.Get(key, WidthOf(shape->key)));
  }
  Next On(const expr::Lookup& x, Way& way) {
    bool found = Find(way, x.key, x.set) != nullptr;
    if (found != x.negate) Say(way, (x.negate ? "is not in @" : "is in @") + x.set);
    return If(found != x.negate);
  }
  Next On(const expr::Map& x, Way& way) {
    const Element* found = Find(way, x.key, x.set);
    if (found) way.registers.Put(x.out, found->data);
    return If(found);
  }
  Next On(const expr::SetMark& x, Way& way) {
    uint32_t mark = 0;
    std::string_view bytes = way.registers.Get(x.reg, sizeof mark);
    if (bytes.empty()) return Next::kRule;
    std::memcpy(&mark, bytes.data(), sizeof mark);
    if (mark != way.outcome.packet.mark)
      Say(way, (way.outcome.packet.mark & ~mark) ? "takes a mark off" : "marks");
    way.outcome.packet.mark = mark;
    return Next::kExpr;
  }
  Next On(const expr::Dnat& x, Way& way) {
    Packet& packet = way.outcome.packet;
    std::string_view ip = way.registers.Get(x.address, packet.destination.bytes().size());
    std::string_view port = way.registers.Get(x.port, 2);
    if (ip.empty() || port.empty()) return Next::kRule;
    packet.destination = IpAddress::FromBytes(ip);
    packet.destination_port =
        static_cast<uint16_t>(static_cast<uint8_t>(port[0]) << 8 | static_cast<uint8_t>(port[1]));
    packet.translated = true;
    Say(way, "dnat to " + packet.destination.ToString() + " port " + std::to_string(packet.destination_port));
    Done(std::move(way));
    return Next::kEnded;
  }
  Next On(const expr::Masquerade&, Way& way) {
    way.outcome.packet.source_translated = true;
    Say(way, "masquerade");
    Done(std::move(way));
    return Next::kEnded;
  }
  Next On(const expr::Reject& x, Way& way) {
    way.outcome.end = TraceOutcome::kRejected;
    Say(way, x.tcp_reset ? "reject with a TCP reset" : "reject with port unreachable");
    Done(std::move(way));
    return Next::kEnded;
  }

  const LiveTable& table_;
  const AddressTypeOf& address_type_;
  std::vector<TraceOutcome> out_;
};

}  // namespace

std::vector<TraceOutcome> WalkChain(const LiveTable& table, const std::string& chain, TraceOutcome before,
                                    const AddressTypeOf& address_type) {
  return Walk(table, address_type).Run(chain, std::move(before));
}

}  // namespace keelson::nft
