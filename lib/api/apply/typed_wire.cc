// Compares two objects by their wire bytes. Skips parts with equal bytes, and builds no message.
#include <algorithm>

#include "lib/api/apply/typed.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/type_table.h"
#include "lib/api/wire.h"

namespace keelson::api {
namespace {

// What happened to one value as a whole; values below it may have changed too.
enum class Fate { kNone, kAdded, kModified, kRemoved };

struct Slot {
  const char* first = nullptr;  // the first record's tag, for lists and maps
  uint32_t count = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

// A value on one side. Lists and maps have their records in [slot.first, end).
struct Side {
  enum { kAbsent, kNull, kPresent } state = kAbsent;
  Slot slot;
  const char* end = nullptr;
  bool absent() const { return state == kAbsent; }
};

struct Item {
  std::string step;
  std::string_view bytes;
  uint64_t number = 0;
};

void Attach(const std::string& step, Fate fate, Comparison& below, Comparison& out) {
  auto add = [&](FieldSet& set, bool member, FieldSet& rest) {
    if (member || !rest.Empty()) set.Append(step, member, std::move(rest));
  };
  add(out.added, fate == Fate::kAdded, below.added);
  add(out.modified, fate == Fate::kModified, below.modified);
  add(out.removed, fate == Fate::kRemoved, below.removed);
}

bool IsText(ValueKind kind) {
  return kind == ValueKind::kString || kind == ValueKind::kBytes || kind == ValueKind::kMessage;
}

Fate Presence(const Side& before, const Side& after) {
  if (before.absent()) return after.absent() ? Fate::kNone : Fate::kAdded;
  return after.absent() ? Fate::kRemoved : Fate::kNone;
}

class Walker {
 public:
  bool failed() const { return failed_; }

  Fate Object(const Shape& shape, const Side& before, const Side& after, Comparison& out);

 private:
  // The slots of one object's fields, by group; on one stack for all objects in progress.
  struct Frame {
    size_t base;
    const char* end[Shape::kMaxGroups];
  };

  void Read(const Shape& shape, std::string_view bytes, Frame& frame);
  Side SideOf(const Shape& shape, const Shape::Field& field, const FieldInfo& info, const Frame& frame) const;
  Fate Value(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after,
             Comparison& out);
  Fate Leaf(const FieldInfo& info, const Side& before, const Side& after);
  Fate List(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after,
            Comparison& out);
  Fate Map(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after, Comparison& out);
  std::vector<Item> Items(const Shape& shape, const FieldInfo& info, const Side& side);
  std::vector<Item> Entries(const FieldInfo& info, const Side& side);
  std::string StepOf(const Shape& list, const FieldInfo& info, const Item& item);
  Fate ItemPair(const Shape& shape, const FieldInfo& info, const Item* before, const Item* after,
                Comparison& out);
  void ItemRuns(const Shape& shape, const FieldInfo& info, const Item* before, size_t n_before,
                const Item* after, size_t n_after, Comparison& out);
  void Pairs(const Shape& shape, const FieldInfo& info, const std::vector<Item>& before,
             const std::vector<Item>& after, Comparison& out);

  std::vector<Slot> slots_;
  bool failed_ = false;
};

void Walker::Read(const Shape& shape, std::string_view bytes, Frame& frame) {
  frame.base = slots_.size();
  size_t at = frame.base;
  size_t starts[Shape::kMaxGroups];
  for (size_t g = 0; g < shape.groups.size(); ++g) {
    const Shape::Group& group = shape.groups[g];
    starts[g] = at;
    slots_.resize(at + group.message->fields.size());
    std::string_view part = bytes;
    if (group.parent >= 0) part = slots_[starts[group.parent] + static_cast<size_t>(group.index)].bytes;
    frame.end[g] = part.data() + part.size();
    wire::Record record;
    for (const char* p = part.data(); p < frame.end[g] && wire::ReadRecord(p, frame.end[g], record);) {
      const FieldInfo* field = group.message->ByNumber(record.field);
      if (!field) continue;
      Slot& slot = slots_[at + static_cast<size_t>(field - group.message->fields.data())];
      if (slot.count++ == 0) slot.first = record.start;
      slot.number = record.number;
      slot.bytes = record.type == wire::kBytes ? record.bytes : std::string_view();
    }
    at = slots_.size();
  }
}

// Whether the JSON that Go would print has the field.
Side Walker::SideOf(const Shape& shape, const Shape::Field& field, const FieldInfo& info,
                    const Frame& frame) const {
  size_t at = frame.base;
  for (int g = 0; g < field.group; ++g) at += shape.groups[static_cast<size_t>(g)].message->fields.size();
  Side side{Side::kPresent, slots_[at + static_cast<size_t>(field.index)], frame.end[field.group]};
  const bool present = side.slot.count != 0;
  if (info.map || info.repeated || (info.kind == ValueKind::kMessage && info.pointer)) {
    if (!present) side.state = info.always ? Side::kNull : Side::kAbsent;
  } else if (info.kind == ValueKind::kMessage) {
    if (info.omit_zero && side.slot.bytes.empty()) side.state = Side::kAbsent;
  } else if (info.pointer) {
    if (!present) side.state = info.always ? Side::kNull : Side::kAbsent;
  } else if (IsText(info.kind) ? side.slot.bytes.empty() : side.slot.number == 0) {
    side.state = !info.always ? Side::kAbsent : info.kind == ValueKind::kBytes ? Side::kNull : Side::kPresent;
  }
  return side;
}

Fate Walker::Leaf(const FieldInfo& info, const Side& before, const Side& after) {
  Fate fate = Presence(before, after);
  if (fate != Fate::kNone) return fate;
  if (before.state != after.state) return Fate::kModified;
  bool same;
  if (info.map || info.repeated) {
    std::vector<Item> a = info.map ? Entries(info, before) : Items({}, info, before);
    std::vector<Item> b = info.map ? Entries(info, after) : Items({}, info, after);
    same = std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Item& x, const Item& y) {
      return x.step == y.step && (IsText(info.kind) ? x.bytes == y.bytes : x.number == y.number);
    });
  } else if (IsText(info.kind)) {
    same = before.slot.bytes == after.slot.bytes;
  } else {
    same = before.slot.number == after.slot.number;
  }
  return same ? Fate::kNone : Fate::kModified;
}

Fate Walker::Object(const Shape& shape, const Side& before, const Side& after, Comparison& out) {
  if (!before.absent() && before.state == after.state && before.slot.bytes == after.slot.bytes) {
    return Fate::kNone;
  }
  Frame old_frame{}, new_frame{};
  const size_t rollback = slots_.size();
  if (before.state == Side::kPresent) Read(shape, before.slot.bytes, old_frame);
  if (after.state == Side::kPresent) Read(shape, after.slot.bytes, new_frame);
  for (const Shape::Field& field : shape.fields) {
    if (field.group < 0) continue;
    const FieldInfo& info =
        shape.groups[static_cast<size_t>(field.group)].message->fields[static_cast<size_t>(field.index)];
    Side old_side, new_side;
    if (before.state == Side::kPresent) old_side = SideOf(shape, field, info, old_frame);
    if (after.state == Side::kPresent) new_side = SideOf(shape, field, info, new_frame);
    if (old_side.absent() && new_side.absent()) continue;
    Comparison below;
    Fate fate = Value(*field.shape, info, old_side, new_side, below);
    if (fate != Fate::kNone || !below.Empty()) Attach(FieldStep(field.name), fate, below, out);
  }
  slots_.resize(rollback);
  return Presence(before, after);
}

Fate Walker::Value(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after,
                   Comparison& out) {
  if (shape.kind == Shape::Kind::kScalar || shape.kind == Shape::Kind::kAny || shape.atomic) {
    return Leaf(info, before, after);
  }
  if (info.repeated) return List(shape, info, before, after, out);
  if (info.map) return Map(shape, info, before, after, out);
  return Object(shape, before, after, out);
}

std::vector<Item> Walker::Items(const Shape& shape, const FieldInfo& info, const Side& side) {
  std::vector<Item> items;
  if (side.state != Side::kPresent) return items;
  items.reserve(side.slot.count);
  wire::Record record;
  for (const char* p = side.slot.first; p < side.end && wire::ReadRecord(p, side.end, record);) {
    if (record.field != info.number) continue;
    if (record.type == wire::kBytes && !IsText(info.kind)) {
      // Packed numbers: Go's writers do not make them, others may.
      const char *q = record.bytes.data(), *end = q + record.bytes.size();
      for (uint64_t number; q < end && wire::ReadVarint(q, end, number);) items.push_back({"", {}, number});
      continue;
    }
    items.push_back({"", record.type == wire::kBytes ? record.bytes : std::string_view(), record.number});
  }
  if (shape.kind == Shape::Kind::kList && !shape.atomic) {
    for (Item& item : items) item.step = StepOf(shape, info, item);
  }
  return items;
}

std::string JsonScalar(ValueKind kind, uint64_t number, std::string_view bytes) {
  std::string out;
  Sink sink(out);
  if (kind == ValueKind::kString) {
    AppendQuoted(bytes, sink);
  } else if (kind == ValueKind::kBool) {
    sink.Append(number != 0 ? "true" : "false");
  } else {
    AppendInt(kind == ValueKind::kInt32 ? static_cast<int32_t>(number) : static_cast<int64_t>(number), sink);
  }
  sink.Finish();
  return out;
}

std::string Walker::StepOf(const Shape& list, const FieldInfo& info, const Item& item) {
  if (list.set) return ValueStep(JsonScalar(info.kind, item.number, item.bytes));
  const Shape& shape = *list.element;
  const size_t rollback = slots_.size();
  Frame frame{};
  Read(shape, item.bytes, frame);
  std::vector<std::pair<std::string_view, std::string>> keys;
  for (const Shape::Key& key : list.keys) {
    const Shape::Field& field = *shape.Find(key.name);
    const FieldInfo& key_info =
        shape.groups[static_cast<size_t>(field.group)].message->fields[static_cast<size_t>(field.index)];
    Side side = SideOf(shape, field, key_info, frame);
    if (!side.absent()) {
      keys.emplace_back(key.name, JsonScalar(key_info.kind, side.slot.number, side.slot.bytes));
    } else if (!key.default_json.empty()) {
      keys.emplace_back(key.name, key.default_json);
    }
  }
  if (keys.empty()) failed_ = true;
  slots_.resize(rollback);
  return KeyStep(keys);
}

std::vector<Item> Walker::Entries(const FieldInfo& info, const Side& side) {
  std::vector<Item> entries;
  if (side.state != Side::kPresent) return entries;
  entries.reserve(side.slot.count);
  wire::Record record, part;
  for (const char* p = side.slot.first; p < side.end && wire::ReadRecord(p, side.end, record);) {
    if (record.field != info.number || record.type != wire::kBytes) continue;
    Item entry;
    std::string_view key;
    const char* end = record.bytes.data() + record.bytes.size();
    for (const char* q = record.bytes.data(); q < end && wire::ReadRecord(q, end, part);) {
      if (part.field == 1) key = part.bytes;
      if (part.field != 2) continue;
      entry.bytes = part.type == wire::kBytes ? part.bytes : std::string_view();
      entry.number = part.number;
    }
    entry.step = FieldStep(key);
    entries.push_back(std::move(entry));
  }
  auto by_step = [](const Item& a, const Item& b) { return a.step < b.step; };
  if (!std::is_sorted(entries.begin(), entries.end(), by_step)) {
    std::stable_sort(entries.begin(), entries.end(), by_step);
  }
  return entries;
}

Fate Walker::ItemPair(const Shape& shape, const FieldInfo& info, const Item* before, const Item* after,
                      Comparison& out) {
  auto to_side = [](const Item* item) {
    Side side;
    if (item) side = {Side::kPresent, {nullptr, 1, item->number, item->bytes}, nullptr};
    return side;
  };
  const Shape& element = *shape.element;
  if (element.kind == Shape::Kind::kMap && !element.atomic && info.kind == ValueKind::kMessage) {
    return Object(element, to_side(before), to_side(after), out);
  }
  if (!before) return Fate::kAdded;
  if (!after) return Fate::kRemoved;
  bool same = IsText(info.kind) ? before->bytes == after->bytes : before->number == after->number;
  return same ? Fate::kNone : Fate::kModified;
}

// Compares all items with one step on both sides. Upstream treats several of them as one value.
void Walker::ItemRuns(const Shape& shape, const FieldInfo& info, const Item* before, size_t n_before,
                      const Item* after, size_t n_after, Comparison& out) {
  const std::string& step = n_before > 0 ? before->step : after->step;
  Comparison below;
  Fate fate = Fate::kNone;
  if (n_before <= 1 && n_after <= 1) {
    fate = ItemPair(shape, info, n_before ? before : nullptr, n_after ? after : nullptr, below);
  } else if (n_before >= 2 && n_after >= 2) {
    bool same =
        std::equal(before, before + n_before, after, after + n_after,
                   [](const Item& a, const Item& b) { return a.bytes == b.bytes && a.number == b.number; });
    if (!same) fate = Fate::kModified;
  } else if (n_before >= 2) {
    Fate added = n_after ? ItemPair(shape, info, nullptr, after, below) : Fate::kNone;
    if (added == Fate::kAdded) out.added.Append(step, true, std::move(below.added));
    below = {};
    fate = Fate::kRemoved;
  } else {
    Fate removed = n_before ? ItemPair(shape, info, before, nullptr, below) : Fate::kNone;
    if (removed == Fate::kRemoved) out.removed.Append(step, true, std::move(below.removed));
    below = {};
    fate = Fate::kAdded;
  }
  if (fate != Fate::kNone || !below.Empty()) Attach(step, fate, below, out);
}

void Walker::Pairs(const Shape& shape, const FieldInfo& info, const std::vector<Item>& before,
                   const std::vector<Item>& after, Comparison& out) {
  auto run = [](const std::vector<Item>& items, size_t from) {
    size_t to = from;
    while (to < items.size() && items[to].step == items[from].step) ++to;
    return to - from;
  };
  for (size_t i = 0, j = 0; i < before.size() || j < after.size();) {
    int order = i == before.size() ? 1 : j == after.size() ? -1 : CompareSteps(before[i].step, after[j].step);
    size_t n = order <= 0 ? run(before, i) : 0, m = order >= 0 ? run(after, j) : 0;
    ItemRuns(shape, info, before.data() + i, n, after.data() + j, m, out);
    i += n;
    j += m;
  }
}

Fate Walker::List(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after,
                  Comparison& out) {
  std::vector<Item> a = Items(shape, info, before), b = Items(shape, info, after);
  auto by_step = [](const Item& x, const Item& y) { return CompareSteps(x.step, y.step) < 0; };
  std::stable_sort(a.begin(), a.end(), by_step);
  std::stable_sort(b.begin(), b.end(), by_step);
  Pairs(shape, info, a, b, out);
  return Presence(before, after);
}

Fate Walker::Map(const Shape& shape, const FieldInfo& info, const Side& before, const Side& after,
                 Comparison& out) {
  Pairs(shape, info, Entries(info, before), Entries(info, after), out);
  return Presence(before, after);
}

}  // namespace

bool CompareWire(const Shape& shape, std::string_view old_object, std::string_view new_object,
                 Comparison& out) {
  Walker walker;
  Side before{Side::kPresent, {nullptr, 1, 0, old_object}, nullptr};
  Side after{Side::kPresent, {nullptr, 1, 0, new_object}, nullptr};
  walker.Object(shape, before, after, out);
  return !walker.failed();
}

}  // namespace keelson::api
