#include "lib/k8s/schema/nodes.h"

#include <algorithm>

#include <re2/re2.h>

#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

namespace {

// States that a matcher keeps beyond what a pattern itself takes.
constexpr int64_t kSmallMemory = 1 << 20;

std::unique_ptr<re2::RE2> CompilePattern(std::string_view text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kSmallMemory);
  auto program = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (program->ok() || program->error_code() != re2::RE2::ErrorPatternTooLarge) return program;
  options.set_max_mem(re2::RE2::Options::kDefaultMaxMem);
  return std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

}  // namespace

LazyPattern::~LazyPattern() { delete program_.load(); }

bool LazyPattern::Matches(std::string_view value) const {
  const re2::RE2* program = program_.load(std::memory_order_acquire);
  if (program == nullptr) {
    std::unique_ptr<re2::RE2> fresh = CompilePattern(text_);
    if (program_.compare_exchange_strong(program, fresh.get(), std::memory_order_acq_rel)) {
      program = fresh.release();
    }
  }
  return program->ok() && re2::RE2::PartialMatch(re2::StringPiece(value.data(), value.size()), *program);
}

NodeIndex SchemaNodes::Property(const SchemaNode& node, std::string_view name) const {
  const auto begin = properties.begin() + node.properties.begin, end = begin + node.properties.size;
  const auto it = std::lower_bound(
      begin, end, name,
      [&](const SchemaProperty& property, std::string_view key) { return Text(property.name) < key; });
  return it != end && Text(it->name) == name ? it->node : kNoNode;
}

StructuralSchema::StructuralSchema(std::unique_ptr<SchemaNodes> nodes) : nodes_(std::move(nodes)) {}
StructuralSchema::~StructuralSchema() = default;

bool StructuralSchema::has_defaults() const { return nodes_->root_node().Is(SchemaNode::kDefaultsBelow); }
bool StructuralSchema::has_rules() const { return nodes_->root_node().Is(SchemaNode::kRulesBelow); }

size_t StructuralSchema::bytes() const {
  const SchemaNodes& all = *nodes_;
  const auto size = [](const auto& table) { return table.capacity() * sizeof(table[0]); };
  return sizeof(SchemaNodes) + size(all.nodes) + size(all.properties) + size(all.names) + size(all.checks) +
         size(all.branches) + size(all.values) + size(all.rules) + all.patterns.size() * sizeof(LazyPattern) +
         all.text.capacity();
}

}  // namespace keelson::k8s
