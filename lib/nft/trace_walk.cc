#include <algorithm>
#include <cstring>
#include <optional>

#include "lib/nft/text.h"
#include "lib/nft/trace_values_internal.h"
#include "lib/nft/trace_walk_internal.h"

namespace keelson::nft {
namespace {

constexpr size_t kMaxDepth = 16;         // NFT_JUMP_STACK_SIZE
constexpr uint32_t kMaxDrawn = 1 << 16;  // numbers per draw, and ways in total
constexpr size_t kMaxEntered = 100000;   // chains on one way: the kernel accepts no loops

const std::vector<Program> kNoRules;

// A packet's way through the chains of one table, copied where ways part.
struct Way {
  TraceOutcome outcome;
  Registers registers;
  const std::vector<Program>* rules = &kNoRules;
  size_t rule = 0, expr = 0;  // where it is in them
  struct Frame {
    const std::vector<Program>* rules;
    size_t rule, said;  // where to continue, and the number of steps when the jump was made
  };
  std::vector<Frame> returns;
  std::vector<std::string> chains;  // names, innermost last
  size_t said_before_rule = 0, entered = 0;
};

// A way stays in `ways_` until it ends; then its outcome is in `out_`. No way is dropped, so there is at
// least one outcome. A loop walks the chains, so the stack stays small however many there are.
class Walk {
 public:
  Walk(const LiveTable& table, const AddressTypeOf& address_type)
      : table_(table), address_type_(address_type) {}

  std::vector<TraceOutcome> Run(const std::string& chain, TraceOutcome outcome) {
    Way first{.outcome = std::move(outcome)};
    first.rules = RulesOf(chain);
    first.chains.push_back(chain);
    ways_.push_back(std::move(first));
    while (!ways_.empty()) {
      Way way = std::move(ways_.back());
      ways_.pop_back();
      Follow(way);
      out_.push_back(std::move(way.outcome));
    }
    return std::move(out_);
  }

 private:
  enum class Next {
    kExpr,       // continue the rule
    kRule,       // continue with the chain's next rule
    kElsewhere,  // continue where the way now points
    kEnded,
  };

  const std::vector<Program>* RulesOf(const std::string& chain) const {
    auto found = table_.programs.find(chain);
    return found == table_.programs.end() ? &kNoRules : &found->second;
  }

  std::string Place(const Way& way) const {
    return ToText(table_.contents.table).substr(std::string_view("table ").size()) + " " + way.chains.back();
  }
  void Say(Way& way, std::string what) const { way.outcome.steps.push_back({Place(way), std::move(what)}); }
  void DoesNotUnderstand(Way& way, const std::string& what) const {
    way.outcome.not_understood.push_back(Place(way) + ": " + what);
  }

  static void GoOn(Way& way) {
    ++way.rule;
    way.expr = 0;
  }

  // Follows a way to its end.
  void Follow(Way& way) {
    for (;;) {
      if (way.rule >= way.rules->size()) {
        if (Return(way) == Next::kEnded) return;
        continue;
      }
      way.registers.Clear();
      way.said_before_rule = way.outcome.steps.size();
      switch (Rest(way)) {
        case Next::kEnded:
          return;
        case Next::kElsewhere:
          break;
        case Next::kExpr:
        case Next::kRule:
          GoOn(way);
      }
    }
  }

  Next Return(Way& way) const {
    if (way.returns.empty()) return Next::kEnded;
    Way::Frame back = way.returns.back();
    way.returns.pop_back();
    way.chains.pop_back();
    // Drop the jump if the chain did nothing.
    if (way.outcome.steps.size() == back.said) way.outcome.steps.pop_back();
    way.rules = back.rules;
    way.rule = back.rule;
    way.expr = 0;
    return Next::kElsewhere;
  }

  Next Enter(Way& way, const Verdict& verdict, const std::string& because) const {
    Say(way, ToText(verdict) + because);
    if (verdict.kind == Verdict::Kind::kGoto) {
      way.chains.back() = verdict.chain;
    } else {
      way.returns.push_back({way.rules, way.rule + 1, way.outcome.steps.size()});
      way.chains.push_back(verdict.chain);
    }
    if (way.returns.size() > kMaxDepth || ++way.entered > kMaxEntered) {
      DoesNotUnderstand(way, "more jumps than can be followed");
      return Next::kEnded;
    }
    way.rules = RulesOf(verdict.chain);
    way.rule = way.expr = 0;
    return Next::kElsewhere;
  }

  // `note`: what the rule says of itself; such a rule is a step even if it only returns.
  Next Apply(Way& way, const Verdict& verdict, const std::string& note = "") const {
    const std::string because = note.empty() ? "" : " (" + note + ")";
    switch (verdict.kind) {
      case Verdict::Kind::kReturn:
        if (!note.empty()) Say(way, ToText(verdict) + because);
        return Return(way);
      case Verdict::Kind::kJump:
      case Verdict::Kind::kGoto:
        return Enter(way, verdict, because);
      case Verdict::Kind::kDrop:
        way.outcome.end = TraceOutcome::kDropped;
        break;
      case Verdict::Kind::kAccept:
        break;
    }
    Say(way, ToText(verdict) + because);
    return Next::kEnded;
  }

  // Runs the rest of the rule, from the way's next expression on; never returns kExpr.
  Next Rest(Way& way) {
    const Program& rule = (*way.rules)[way.rule];
    while (way.expr < rule.exprs.size()) {
      Next next = std::visit([&](const auto& x) { return On(x, way); }, rule.exprs[way.expr++]);
      if (next == Next::kRule) return NoMatch(way);
      if (next != Next::kExpr) return next;
    }
    if (rule.not_understood.empty()) return Next::kRule;
    DoesNotUnderstand(way, rule.not_understood);
    return NoMatch(way);
  }

  // Drops the steps that this rule has added.
  static Next NoMatch(Way& way) {
    way.outcome.steps.resize(std::min(way.said_before_rule, way.outcome.steps.size()));
    return Next::kRule;
  }

  // ---- one expression each ----
  static Next If(bool matches) { return matches ? Next::kExpr : Next::kRule; }

  Next On(const expr::Load& x, Way& way) {
    way.registers.Put(x.reg, FieldBytes(x.field, way.outcome.packet, address_type_));
    return Next::kExpr;
  }
  // Every number becomes a way of its own. Ways on which the rule then does not match continue as one,
  // because what follows is the same for them. The last number belongs to `way` itself.
  Next On(const expr::Random& x, Way& way) {
    if (x.modulus == 0 || out_.size() + ways_.size() + x.modulus > kMaxDrawn) {
      DoesNotUnderstand(way, "a number below " + std::to_string(x.modulus) + " is drawn");
      return Next::kRule;
    }
    std::optional<Way> missed;
    for (uint32_t n = 0; n + 1 < x.modulus; ++n) {
      Way branch = way;
      branch.registers.Put(x.reg, Key().Mark(x.offset + n).bytes());
      switch (Rest(branch)) {
        case Next::kEnded:
          out_.push_back(std::move(branch.outcome));
          break;
        case Next::kElsewhere:
          ways_.push_back(std::move(branch));
          break;
        case Next::kExpr:
        case Next::kRule:
          if (!missed) missed = std::move(branch);
      }
    }
    way.registers.Put(x.reg, Key().Mark(x.offset + x.modulus - 1).bytes());
    Next last = Rest(way);
    if (missed && last != Next::kRule) {
      GoOn(*missed);
      ways_.push_back(std::move(*missed));
    }
    return last;
  }
  Next On(const expr::Finish& x, Way& way) { return Apply(way, x.verdict, (*way.rules)[way.rule].note); }
  // Renewals and counters do not matter to a trace.
  Next On(const expr::SetEtherDaddr&, Way&) { return Next::kExpr; }
  Next On(const expr::SetPacketType&, Way&) { return Next::kExpr; }
  Next On(const expr::Update&, Way&) { return Next::kExpr; }
  Next On(const expr::Forget&, Way&) { return Next::kExpr; }
  Next On(const expr::Counter&, Way&) { return Next::kExpr; }
  Next On(const expr::Limit&, Way&) { return Next::kExpr; }
  Next On(const expr::Log&, Way&) { return Next::kExpr; }
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
  // Null for sets of other programs' types, which have no name here, and for interval sets of a single
  // value, which are stored differently.
  const Ruleset::SetContents* SetNamed(const std::string& name, Way& way) const {
    auto set = table_.contents.sets.find(name);
    const Set* shape = set == table_.contents.sets.end() ? nullptr : &set->second.set;
    if (shape && !shape->key.empty() && !(shape->interval && shape->key.size() == 1)) return &set->second;
    DoesNotUnderstand(way, "@" + name);
    return nullptr;
  }
  const Element* Find(const Ruleset::SetContents* set, int key, const Way& way) const {
    return set ? FindElement(*set, way.registers.Get(key, WidthOf(set->set.key))) : nullptr;
  }
  Next On(const expr::Lookup& x, Way& way) {
    const Ruleset::SetContents* set = SetNamed(x.set, way);
    bool matches = set && (Find(set, x.key, way) != nullptr) != x.negate;
    if (matches) Say(way, (x.negate ? "is not in @" : "is in @") + x.set);
    return If(matches);
  }
  Next On(const expr::Map& x, Way& way) {
    const Element* found = Find(SetNamed(x.set, way), x.key, way);
    if (found) way.registers.Put(x.out, found->data);
    return If(found);
  }
  Next On(const expr::VerdictMap& x, Way& way) {
    const Element* found = Find(SetNamed(x.set, way), x.key, way);
    if (!found || !found->verdict) return Next::kRule;
    Say(way, "is in @" + x.set);
    return Apply(way, *found->verdict);
  }
  Next On(const expr::SetMark& x, Way& way) {
    uint32_t mark = 0;
    std::string_view bytes = way.registers.Get(x.reg, sizeof mark);
    if (bytes.empty()) return Next::kRule;
    std::memcpy(&mark, bytes.data(), sizeof mark);
    if (mark != way.outcome.packet.mark) {
      Say(way, (way.outcome.packet.mark & ~mark) ? "takes a mark off" : "marks");
    }
    way.outcome.packet.mark = mark;
    return Next::kExpr;
  }
  Next On(const expr::Dnat& x, Way& way) {
    Packet& packet = way.outcome.packet;
    std::string_view ip = way.registers.Get(x.address, packet.destination.bytes().size());
    std::string_view port = way.registers.Get(x.port, 2);
    if (ip.empty() || port.empty()) return Next::kRule;
    if (!packet.translated) packet.first_destination = packet.destination;
    packet.destination = IpAddress::FromBytes(ip);
    packet.destination_port =
        static_cast<uint16_t>(static_cast<uint8_t>(port[0]) << 8 | static_cast<uint8_t>(port[1]));
    packet.translated = true;
    Say(way, "dnat to " + packet.destination.ToString() + " port " + std::to_string(packet.destination_port));
    return Next::kEnded;
  }
  Next On(const expr::Masquerade&, Way& way) {
    way.outcome.packet.source_translated = true;
    Say(way, "masquerade");
    return Next::kEnded;
  }
  Next On(const expr::Reject& x, Way& way) {
    way.outcome.end = TraceOutcome::kRejected;
    Say(way, x.tcp_reset ? "reject with a TCP reset" : "reject with port unreachable");
    return Next::kEnded;
  }

  const LiveTable& table_;
  const AddressTypeOf& address_type_;
  std::vector<Way> ways_;
  std::vector<TraceOutcome> out_;
};

}  // namespace

std::vector<TraceOutcome> WalkChain(const LiveTable& table, const std::string& chain, TraceOutcome before,
                                    const AddressTypeOf& address_type) {
  return Walk(table, address_type).Run(chain, std::move(before));
}

}  // namespace keelson::nft
