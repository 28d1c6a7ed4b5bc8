// Checks objects against their schemas, with the messages of kube-openapi's validator.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/schema/correlate.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/place.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/schema/value_checks.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

// What checking a value against a node gave. Of alternatives that all fail, the one with most `matches` tells why.
struct Outcome {
  FieldErrors errors;
  int matches = 0;

  bool IsValid() const { return errors.empty(); }
  void Merge(Outcome other) {
    errors.insert(errors.end(), std::make_move_iterator(other.errors.begin()),
                  std::make_move_iterator(other.errors.end()));
    matches += other.matches;
  }
};

class Validator {
 public:
  Validator(const SchemaNodes& nodes, Correlator* correlator) : nodes_(nodes), correlator_(correlator) {}

  // Checks a part of the object. Errors of a part that did not change do not count.
  void Check(const SchemaNode& node, const json::value& value, const Place& place, const Correlation& old,
             Outcome& out) {
    const size_t before = out.errors.size();
    CheckNode(node, value, place, old, out);
    if (out.errors.size() > before && correlator_ && correlator_->IsUnchanged(old, value)) {
      out.errors.resize(before, FieldError{FieldError::Type::kInvalid, "", "", ""});
    }
  }

 private:
  // A hostile object cannot make more errors than anyone reads.
  static constexpr size_t kMaxErrors = 1000;

  void CheckNode(const SchemaNode& node, const json::value& value, const Place& place, const Correlation& old,
                 Outcome& out) {
    if (out.errors.size() >= kMaxErrors) return;
    const ValueChecks* checks = node.checks == kNothing ? nullptr : &nodes_.checks[node.checks];
    if (value.is_null()) {
      out.matches += CheckValueType(nodes_, node, value, place, out.errors);
      if (checks) CheckEnum(nodes_, *checks, value, place, out.errors);
      return;
    }
    if (node.type != SchemaType::kAny || node.format.size > 0) {
      out.matches += CheckValueType(nodes_, node, value, place, out.errors) ? 2 : 1;
    }
    if (checks) CheckBranches(*checks, value, place, old, out);
    out.matches += 4;  // two of the branches, one each of enum and of the whole
    if (value.is_string()) {
      if (checks) CheckString(nodes_, *checks, View(value.get_string()), place, out.errors);
      if (node.format.size > 0) CheckFormat(nodes_.Text(node.format), value, place, out.errors);
      out.matches += node.format.size > 0 ? 2 : 1;
    } else if (value.is_number()) {
      if (checks) CheckNumber(*checks, value, place, out.errors);
      out.matches += 2;
    } else if (value.is_array()) {
      CheckItems(node, value.get_array(), place, old, out);
      if (checks) CheckListSize(*checks, value.get_array(), place, out.errors);
      out.matches += 2;
    }
    if (checks) CheckEnum(nodes_, *checks, value, place, out.errors);
    if (value.is_object()) {
      const bool sized = !checks || CheckObjectSize(*checks, value.get_object(), place, out.errors);
      if (sized) CheckMembers(node, value, place, old, out);
      ++out.matches;
    }
  }

  void CheckItems(const SchemaNode& node, const json::array& list, const Place& place, const Correlation& old,
                  Outcome& out) {
    if (node.items == kNoNode) return;
    const SchemaNode& items = nodes_.nodes[node.items];
    for (size_t i = 0; i < list.size() && out.errors.size() < kMaxErrors; ++i) {
      Check(items, list[i], place.Index(i), correlator_ ? correlator_->Item(old, list[i]) : Correlation(),
            out);
    }
  }

  void CheckMembers(const SchemaNode& node, const json::value& value, const Place& place,
                    const Correlation& old, Outcome& out) {
    const json::object& object = value.get_object();
    for (const auto& member : object) {
      if (out.errors.size() >= kMaxErrors) return;
      const std::string_view name = View(member.key());
      NodeIndex below = nodes_.Property(node, name);
      if (below == kNoNode) {
        if (node.Is(SchemaNode::kAdditionalForbidden)) AddForbiddenMember(name, place, out.errors);
        below = node.additional;
      }
      if (below == kNoNode) continue;
      Correlation old_member;
      // All versions of an object have another apiVersion and the same values otherwise.
      if (correlator_ && !(place.IsRoot() && (name == "kind" || name == "apiVersion"))) {
        old_member = correlator_->Member(old, name);
      }
      Check(nodes_.nodes[below], member.value(), place.Child(name), old_member, out);
    }
    for (uint32_t i = 0; i < node.required.size; ++i) {
      const std::string_view name = nodes_.Name(node.required, i);
      if (object.contains(json::string_view(name.data(), name.size()))) continue;
      out.errors.push_back({FieldError::Type::kRequired, place.Child(name).ToString(), "", ""});
    }
  }

  Outcome Branch(NodeIndex index, const json::value& value, const Place& place, const Correlation& old) {
    Outcome out;
    CheckNode(nodes_.nodes[index], value, place, old, out);
    return out;
  }

  void CheckBranches(const ValueChecks& checks, const json::value& value, const Place& place,
                     const Correlation& old, Outcome& out) {
    if (checks.any_of.size > 0) CheckAnyOf(checks.any_of, value, place, old, out);
    if (checks.one_of.size > 0) CheckOneOf(checks.one_of, value, place, old, out);
    if (checks.all_of.size > 0) CheckAllOf(checks.all_of, value, place, old, out);
    if (checks.not_ != kNoNode && Branch(checks.not_, value, place, old).IsValid()) {
      AddProblem(place, "must not validate the schema (not)", out);
    }
  }

  void CheckAnyOf(TableRange branches, const json::value& value, const Place& place, const Correlation& old,
                  Outcome& out) {
    Outcome best;
    for (uint32_t i = 0; i < branches.size; ++i) {
      Outcome one = Branch(nodes_.branches[branches.begin + i], value, place, old);
      if (one.IsValid()) {
        out.matches += one.matches;
        return;
      }
      if (i == 0 || one.matches > best.matches) best = std::move(one);
    }
    AddProblem(place, "must validate at least one schema (anyOf)", out);
    out.Merge(std::move(best));
  }

  void CheckOneOf(TableRange branches, const json::value& value, const Place& place, const Correlation& old,
                  Outcome& out) {
    Outcome best;
    int valid = 0, matches = 0;
    for (uint32_t i = 0; i < branches.size; ++i) {
      Outcome one = Branch(nodes_.branches[branches.begin + i], value, place, old);
      if (one.IsValid()) {
        if (valid++ == 0) matches = one.matches;
      } else if (valid == 0 && (i == 0 || one.matches > best.matches)) {
        best = std::move(one);
      }
    }
    if (valid == 1) {
      out.matches += matches;
    } else if (valid == 0) {
      AddProblem(place, "must validate one and only one schema (oneOf). Found none valid", out);
      out.Merge(std::move(best));
    } else {
      AddProblem(
          place,
          fmt::format("must validate one and only one schema (oneOf). Found {} valid alternatives", valid),
          out);
    }
  }

  void CheckAllOf(TableRange branches, const json::value& value, const Place& place, const Correlation& old,
                  Outcome& out) {
    uint32_t valid = 0;
    for (uint32_t i = 0; i < branches.size; ++i) {
      Outcome one = Branch(nodes_.branches[branches.begin + i], value, place, old);
      valid += one.IsValid();
      out.Merge(std::move(one));
    }
    if (valid == branches.size) return;
    AddProblem(place,
               fmt::format("must validate all the schemas (allOf){}", valid == 0 ? ". None validated" : ""),
               out);
  }

  // Upstream does not say where: the message does.
  static void AddProblem(const Place& place, std::string_view problem, Outcome& out) {
    out.errors.push_back({FieldError::Type::kInvalid, "<nil>", "\"\"",
                          fmt::format("{} {}", Quote(place.ToString()), problem)});
  }

  const SchemaNodes& nodes_;
  Correlator* const correlator_;
};

// Several branches may find the same problem.
void RemoveRepeated(FieldErrors& errors) {
  std::set<std::string> seen;
  const auto repeated = [&](const FieldError& error) { return !seen.insert(error.ToString()).second; };
  errors.erase(std::remove_if(errors.begin(), errors.end(), repeated), errors.end());
}

}  // namespace

FieldErrors ValidateSchema(const StructuralSchema& schema, const json::value& object,
                           const json::value* old) {
  const SchemaNodes& nodes = schema.nodes();
  Correlator correlator(nodes);
  Outcome out;
  Validator(nodes, old ? &correlator : nullptr)
      .Check(nodes.root_node(), object, Place(), old ? Correlation{old, nodes.root} : Correlation(), out);
  RemoveRepeated(out.errors);
  return std::move(out.errors);
}

}  // namespace keelson::k8s
