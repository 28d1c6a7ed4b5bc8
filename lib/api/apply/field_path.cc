#include "lib/api/apply/field_path.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/apply/field_step.h"
#include "lib/api/codec/json_text.h"

namespace keelson::api {
namespace {

constexpr int kMaxPathDepth = 200;

Error Malformed(std::string_view why) {
  return Error(Code::kBadRequest, fmt::format("error decoding set: {}", why));
}

// Reads the contents of one FieldsV1 object. `self`: it contains itself (".").
bool ReadSet(JsonReader& reader, int depth, std::vector<FieldSet::Node>& nodes, bool& self) {
  if (depth > kMaxPathDepth) return reader.TooDeep();
  if (!reader.Take('{')) return reader.Unexpected("looking for beginning of object");
  if (reader.Take('}')) return true;
  bool sorted = true;
  for (bool more = true; more;) {
    std::string_view name;
    if (!reader.Name(name)) return false;
    FieldSet::Node node;
    bool known = false, is_self = name == ".";
    if (!is_self && !CanonicalStep(name, node.step, known)) return reader.Fail("invalid path element");
    std::vector<FieldSet::Node> below;
    bool named = false;
    if (!ReadSet(reader, depth + 1, below, named)) return false;
    if (is_self) self = true;
    if (known) {
      node.member = named || below.empty();
      node.below.mutable_nodes() = std::move(below);
      sorted = sorted && (nodes.empty() || CompareSteps(nodes.back().step, node.step) < 0);
      nodes.push_back(std::move(node));
    }
    if (!reader.Next('}', "after object key:value pair", more)) return false;
  }
  if (sorted) return true;
  // Input of careless writers: sort it, and merge duplicates.
  std::stable_sort(nodes.begin(), nodes.end(), [](const FieldSet::Node& a, const FieldSet::Node& b) {
    return CompareSteps(a.step, b.step) < 0;
  });
  size_t kept = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[kept].step != nodes[i].step) {
      if (++kept != i) nodes[kept] = std::move(nodes[i]);
      continue;
    }
    nodes[kept].member |= nodes[i].member;
    nodes[kept].below.UnionWith(nodes[i].below);
  }
  nodes.resize(kept + 1);
  return true;
}

void WriteSet(const FieldSet& set, bool self, Sink& out) {
  out.Put('{');
  bool first = true;
  if (self && !set.Empty()) {
    out.Append("\".\":{}");
    first = false;
  }
  for (const FieldSet::Node& node : set.nodes()) {
    if (!first) out.Put(',');
    first = false;
    AppendQuoted(node.step, out);
    out.Put(':');
    WriteSet(node.below, node.member, out);
  }
  out.Put('}');
}

void Visit(const FieldSet& set, FieldPath& path, const std::function<void(const FieldPath&)>& each) {
  for (const FieldSet::Node& node : set.nodes()) {
    if (!node.member) continue;
    path.push_back(node.step);
    each(path);
    path.pop_back();
  }
  for (const FieldSet::Node& node : set.nodes()) {
    if (node.below.Empty()) continue;
    path.push_back(node.step);
    Visit(node.below, path, each);
    path.pop_back();
  }
}

// Walks two sorted branches side by side. `both` returns false to remove the node from `nodes`.
template <typename Both>
void EraseMatching(std::vector<FieldSet::Node>& nodes, const std::vector<FieldSet::Node>& others, Both both) {
  size_t kept = 0, j = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    int order = 1;
    while (j < others.size() && (order = CompareSteps(others[j].step, nodes[i].step)) < 0) ++j;
    bool keep = j == others.size() || order != 0 || both(nodes[i], others[j]);
    if (!keep) continue;
    if (kept != i) nodes[kept] = std::move(nodes[i]);
    ++kept;
  }
  nodes.resize(kept);
}

// Keeps what is on the way to, or below, `patterns` from step `at` on.
void KeepMatching(FieldSet& set, const std::vector<std::vector<std::string>>& patterns, size_t at) {
  auto& nodes = set.mutable_nodes();
  size_t kept = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::vector<std::string>> matching;
    bool whole = false;
    for (const auto& pattern : patterns) {
      if (pattern[at] != "*" && pattern[at] != nodes[i].step) continue;
      whole |= pattern.size() == at + 1;
      matching.push_back(pattern);
    }
    if (matching.empty()) continue;
    if (!whole) KeepMatching(nodes[i].below, matching, at + 1);
    if (!nodes[i].member && nodes[i].below.Empty()) continue;
    if (kept != i) nodes[kept] = std::move(nodes[i]);
    ++kept;
  }
  nodes.resize(kept);
}

}  // namespace

std::string PrintPath(const FieldPath& path) {
  std::string out;
  for (const std::string& step : path) out += PrintStep(step);
  return out;
}

FieldPath MakePath(std::initializer_list<std::string_view> names) {
  FieldPath path;
  for (std::string_view name : names) path.push_back(FieldStep(name));
  return path;
}

size_t FieldSet::Size() const {
  size_t size = 0;
  for (const Node& node : nodes_) size += node.member + node.below.Size();
  return size;
}

bool FieldSet::operator==(const FieldSet& other) const { return nodes_ == other.nodes_; }

size_t FieldSet::LowerBound(std::string_view step) const {
  auto at = std::lower_bound(
      nodes_.begin(), nodes_.end(), step,
      [](const Node& node, std::string_view value) { return CompareSteps(node.step, value) < 0; });
  return static_cast<size_t>(at - nodes_.begin());
}

bool FieldSet::Has(const FieldPath& path, size_t at) const {
  if (at == path.size()) return false;
  size_t index = LowerBound(path[at]);
  if (index == nodes_.size() || nodes_[index].step != path[at]) return false;
  return at + 1 == path.size() ? nodes_[index].member : nodes_[index].below.Has(path, at + 1);
}

void FieldSet::Insert(const FieldPath& path, size_t at) {
  if (at == path.size()) return;
  size_t index = LowerBound(path[at]);
  if (index == nodes_.size() || nodes_[index].step != path[at]) {
    Node node;
    node.step = path[at];
    nodes_.insert(nodes_.begin() + static_cast<std::ptrdiff_t>(index), std::move(node));
  }
  if (at + 1 == path.size()) {
    nodes_[index].member = true;
  } else {
    nodes_[index].below.Insert(path, at + 1);
  }
}

void FieldSet::UnionWith(const FieldSet& other) {
  if (other.nodes_.empty()) return;
  if (nodes_.empty()) {
    nodes_ = other.nodes_;
    return;
  }
  std::vector<Node> merged;
  merged.reserve(nodes_.size() + other.nodes_.size());
  size_t i = 0, j = 0;
  while (i < nodes_.size() && j < other.nodes_.size()) {
    int order = CompareSteps(nodes_[i].step, other.nodes_[j].step);
    if (order > 0) {
      merged.push_back(other.nodes_[j++]);
      continue;
    }
    merged.push_back(std::move(nodes_[i++]));
    if (order < 0) continue;
    merged.back().member |= other.nodes_[j].member;
    merged.back().below.UnionWith(other.nodes_[j++].below);
  }
  for (; i < nodes_.size(); ++i) merged.push_back(std::move(nodes_[i]));
  for (; j < other.nodes_.size(); ++j) merged.push_back(other.nodes_[j]);
  nodes_ = std::move(merged);
}

bool FieldSet::Subtract(const FieldSet& other) {
  bool changed = false;
  if (other.Empty()) return false;
  EraseMatching(nodes_, other.nodes_, [&](Node& mine, const Node& theirs) {
    if (theirs.member && mine.member) {
      mine.member = false;
      changed = true;
    }
    if (mine.below.Subtract(theirs.below)) changed = true;
    return mine.member || !mine.below.Empty();
  });
  return changed;
}

bool FieldSet::SubtractTrees(const FieldSet& other) {
  bool changed = false;
  if (other.Empty()) return false;
  EraseMatching(nodes_, other.nodes_, [&](Node& mine, const Node& theirs) {
    if (theirs.member) {
      changed = true;
      return false;
    }
    if (mine.below.SubtractTrees(theirs.below)) changed = true;
    return mine.member || !mine.below.Empty();
  });
  return changed;
}

FieldSet FieldSet::Intersection(const FieldSet& other) const {
  FieldSet out;
  for (size_t i = 0, j = 0; i < nodes_.size() && j < other.nodes_.size();) {
    int order = CompareSteps(nodes_[i].step, other.nodes_[j].step);
    if (order < 0) ++i;
    if (order > 0) ++j;
    if (order != 0) continue;
    const Node &mine = nodes_[i++], &theirs = other.nodes_[j++];
    out.Append(mine.step, mine.member && theirs.member, mine.below.Intersection(theirs.below));
  }
  return out;
}

bool FieldSet::Intersects(const FieldSet& other) const {
  for (size_t i = 0, j = 0; i < nodes_.size() && j < other.nodes_.size();) {
    int order = CompareSteps(nodes_[i].step, other.nodes_[j].step);
    if (order < 0) ++i;
    if (order > 0) ++j;
    if (order != 0) continue;
    const Node &mine = nodes_[i++], &theirs = other.nodes_[j++];
    if ((mine.member && theirs.member) || mine.below.Intersects(theirs.below)) return true;
  }
  return false;
}

const FieldSet* FieldSet::Below(std::string_view step) const {
  size_t index = LowerBound(step);
  if (index == nodes_.size() || nodes_[index].step != step || nodes_[index].below.Empty()) return nullptr;
  return &nodes_[index].below;
}

void FieldSet::ForEach(const std::function<void(const FieldPath&)>& each) const {
  FieldPath path;
  Visit(*this, path, each);
}

void FieldSet::AppendJson(std::string& out) const {
  Sink sink(out);
  WriteSet(*this, false, sink);
}

std::string FieldSet::ToJson() const {
  std::string out;
  AppendJson(out);
  return out;
}

Result<FieldSet> FieldSet::FromJson(std::string_view json) {
  JsonReader reader(json);
  FieldSet set;
  bool self = false;
  if (!ReadSet(reader, 0, set.nodes_, self)) return Malformed(reader.error());
  if (!reader.AtEnd()) return Malformed("data after the set");
  return set;
}

void FieldSet::Append(std::string step, bool member, FieldSet below) {
  if (!member && below.Empty()) return;
  nodes_.push_back({std::move(step), member, std::move(below)});
}

void FieldSet::Sort() {
  std::sort(nodes_.begin(), nodes_.end(),
            [](const Node& a, const Node& b) { return CompareSteps(a.step, b.step) < 0; });
}

const FieldFilter& FieldFilter::Everything() {
  static const FieldFilter everything;
  return everything;
}

FieldFilter FieldFilter::Without(FieldSet fields) {
  FieldFilter filter;
  filter.excluded_ = std::move(fields);
  return filter;
}

FieldFilter FieldFilter::Only(std::vector<std::vector<std::string>> patterns) {
  FieldFilter filter;
  filter.patterns_ = std::move(patterns);
  return filter;
}

void FieldFilter::Apply(FieldSet& set) const {
  set.SubtractTrees(excluded_);
  if (!patterns_.empty()) KeepMatching(set, patterns_, 0);
}

}  // namespace keelson::api
