#include "lib/bpf/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "lib/bpf/listen_internal.h"

namespace keelson::bpf {
namespace {

// Each listening thread has its own log.
thread_local std::string* listening = nullptr;

int Listen(libbpf_print_level level, const char* format, va_list arguments) {
  if (!listening || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return 0;
  const size_t before = listening->size();
  listening->resize(before + static_cast<size_t>(size) + 1);
  std::vsnprintf(listening->data() + before, static_cast<size_t>(size) + 1, format, arguments);
  listening->pop_back();
  return size;
}

class Listening {
 public:
  explicit Listening(std::string& log) {
    TakeWordsOfLibbpf();
    listening = &log;
  }
  ~Listening() { listening = nullptr; }
};

std::string LastLines(const std::string& log, int lines) {
  size_t at = log.size();
  for (; lines >= 0 && at != std::string::npos && at != 0; --lines) at = log.rfind('\n', at - 1);
  std::string out = at == std::string::npos || at == 0 ? log : log.substr(at + 1);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

Error Told(int errnum, const std::string& what, const std::string& log) {
  // libbpf's own codes, for files that are no BPF objects.
  if (errnum >= __LIBBPF_ERRNO__START) errnum = EINVAL;
  Error out = Error::FromErrno(errnum, what);
  if (log.empty()) return out;
  return Error(out.code(), out.message() + ": " + LastLines(log, 6), errnum);
}

}  // namespace

void TakeWordsOfLibbpf() {
  static const auto installed = ::libbpf_set_print(Listen);
  (void)installed;
}

Program::Program(const bpf_program* program)
    : fd_(::bpf_program__fd(program)),
      name_(::bpf_program__name(program)),
      attach_type_(::bpf_program__expected_attach_type(program)) {}

Result<Program::Output> Program::TestRun(std::string_view packet, std::string_view context) const {
  Output out;
  out.packet.resize(packet.empty() ? 0 : packet.size() + 256);
  out.context.resize(context.size());
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet.empty() ? nullptr : packet.data(),
              .data_out = out.packet.empty() ? nullptr : out.packet.data(),
              .data_size_in = static_cast<uint32_t>(packet.size()),
              .data_size_out = static_cast<uint32_t>(out.packet.size()),
              .ctx_in = context.empty() ? nullptr : context.data(),
              .ctx_out = context.empty() ? nullptr : out.context.data(),
              .ctx_size_in = static_cast<uint32_t>(context.size()),
              .ctx_size_out = static_cast<uint32_t>(context.size()));
  if (::bpf_prog_test_run_opts(fd_, &options) != 0) return ErrnoError("run BPF program " + name_);
  out.result = options.retval;
  out.packet.resize(options.data_size_out);
  out.context.resize(options.ctx_size_out);
  return out;
}

void Object::Closer::operator()(bpf_object* object) const { ::bpf_object__close(object); }

Result<Object> Object::Open(std::string_view elf, const std::string& name) {
  std::string log;
  Listening here(log);
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name.c_str());
  bpf_object* object = ::bpf_object__open_mem(elf.data(), elf.size(), &options);
  if (!object) return Told(errno, "open BPF object " + name, log);
  return Object(object);
}

Result<> Object::SetMaxEntries(const std::string& map, uint32_t entries) {
  bpf_map* found = ::bpf_object__find_map_by_name(object_.get(), map.c_str());
  if (!found) return Error(Code::kInternal, "no BPF map " + map);
  if (::bpf_map__set_max_entries(found, entries) != 0) return ErrnoError("size of BPF map " + map);
  return {};
}

Result<> Object::Reuse(const std::string& map, const Map& existing) {
  bpf_map* found = ::bpf_object__find_map_by_name(object_.get(), map.c_str());
  if (!found) return Error(Code::kInternal, "no BPF map " + map);
  const MapShape& shape = existing.shape();
  if (shape.type != static_cast<uint32_t>(::bpf_map__type(found)) ||
      shape.key_size != ::bpf_map__key_size(found) || shape.value_size != ::bpf_map__value_size(found) ||
      shape.flags != ::bpf_map__map_flags(found)) {
    return Error(Code::kInvalid, existing.name() + " is no map like " + map);
  }
  if (::bpf_map__reuse_fd(found, existing.fd()) != 0) return ErrnoError("use BPF map " + existing.name());
  return {};
}

Result<> Object::SetConstant(const std::string& variable, std::string_view value) {
  const btf* types = ::bpf_object__btf(object_.get());
  const int section = types ? ::btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC) : -1;
  bpf_map* map = ::bpf_object__find_map_by_name(object_.get(), ".rodata");
  size_t size = 0;
  const auto* data = map ? static_cast<const char*>(::bpf_map__initial_value(map, &size)) : nullptr;
  if (section < 0 || !data) return Error(Code::kInternal, "BPF object without constants");
  const btf_type* type = ::btf__type_by_id(types, static_cast<uint32_t>(section));
  const btf_var_secinfo* info = btf_var_secinfos(type);
  for (int i = 0; i < btf_vlen(type); ++i, ++info) {
    const btf_type* var = ::btf__type_by_id(types, info->type);
    if (variable != ::btf__name_by_offset(types, var->name_off)) continue;
    if (info->size != value.size() || info->offset + info->size > size) break;
    std::string all(data, size);
    all.replace(info->offset, value.size(), value);
    if (::bpf_map__set_initial_value(map, all.data(), size) != 0) return ErrnoError("set BPF constants");
    return {};
  }
  return Error(Code::kInternal, "no BPF constant " + variable + " of that size");
}

Result<> Object::Load() {
  log_.clear();
  Listening here(log_);
  if (::bpf_object__load(object_.get()) != 0) {
    return Told(errno, std::string("load BPF object ") + ::bpf_object__name(object_.get()), log_);
  }
  return {};
}

Result<Map> Object::GetMap(const std::string& name) const {
  const int fd = ::bpf_object__find_map_fd_by_name(object_.get(), name.c_str());
  if (fd < 0) return Error(Code::kInternal, "no BPF map " + name);
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return ErrnoError("copy BPF map " + name);
  return Map::FromFd(std::move(copy), name);
}

Result<Program> Object::GetProgram(const std::string& name) const {
  const bpf_program* found = ::bpf_object__find_program_by_name(object_.get(), name.c_str());
  if (!found) return Error(Code::kInternal, "no BPF program " + name);
  return Program(found);
}

std::vector<Program> Object::Programs() const {
  std::vector<Program> out;
  bpf_program* program = nullptr;
  while ((program = ::bpf_object__next_program(object_.get(), program))) out.push_back(Program(program));
  return out;
}

std::vector<std::string> Object::MapNames() const {
  std::vector<std::string> out;
  bpf_map* map = nullptr;
  while ((map = ::bpf_object__next_map(object_.get(), map))) {
    if (!::bpf_map__is_internal(map)) out.push_back(::bpf_map__name(map));
  }
  return out;
}

}  // namespace keelson::bpf
