// A PJRT plugin that computes on the processor and, being named "cuda", is given the graphs that a GPU would be given.
// If GPU_CARD names a file with the description of a card, as h100.txtpb, programs of at least 60,000 bytes are not
// computed: they are compiled for the card by the CUDA plugin, which needs no GPU for that, and a line in GPU_LOG says
// "ok" and the peak of memory in bytes, or "failed" and why. To its caller such a program is an error.
//
//	GPU_CPU   the plugin for processors        GPU_CUDA  the CUDA plugin
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

static PJRT_Api this;
static const PJRT_Api *cpu, *cuda;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define ARGS(type, name) type##_Args name = {.struct_size = type##_Args_STRUCT_SIZE}

static void stop(const char *reason) {
  fprintf(stderr, "GPU plugin: %s\n", reason);
  exit(1);
}

static const PJRT_Api *load(const char *variable) {
  const char *path = getenv(variable);
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) stop(path ? dlerror() : variable);
  return ((const PJRT_Api *(*)(void))dlsym(library, "GetPjrtApi"))();
}

static PJRT_NamedValue text(const char *name, const char *value) {
  return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE, .name = name, .name_size = strlen(name),
      .type = PJRT_NamedValue_kString, .string_value = value, .value_size = strlen(value)};
}

// failed writes the message of an error, if it is one, as a line.
static int failed(PJRT_Error *error, FILE *log) {
  if (!error) return 0;
  ARGS(PJRT_Error_Message, m);
  m.error = error;
  cuda->PJRT_Error_Message(&m);
  fprintf(log, "failed ");
  for (size_t i = 0; i < m.message_size; i++) fputc(m.message[i] == '\n' ? ' ' : m.message[i], log);
  fputc('\n', log);
  return 1;
}

static void compile_for(const char *card, PJRT_Client_Compile_Args *a, FILE *log) {
  if (!cuda) {
    cuda = load("GPU_CUDA");
    ARGS(PJRT_Plugin_Initialize, i);
    if (failed(cuda->PJRT_Plugin_Initialize(&i), log)) return;
  }
  static char description[1 << 14];
  FILE *file = fopen(card, "r");
  if (!file) stop(card);
  description[fread(description, 1, sizeof description - 1, file)] = 0;
  fclose(file);
  PJRT_NamedValue options[] = {text("target_config", description), text("topology", "1x1x1")};
  ARGS(PJRT_TopologyDescription_Create, t);
  t.topology_name = "cuda", t.topology_name_size = 4, t.create_options = options, t.num_options = 2;
  if (failed(cuda->PJRT_TopologyDescription_Create(&t), log)) return;
  ARGS(PJRT_Compile, c);
  c.topology = t.topology, c.program = a->program;
  c.compile_options = a->compile_options, c.compile_options_size = a->compile_options_size;
  if (failed(cuda->PJRT_Compile(&c), log)) return;
  ARGS(PJRT_Executable_GetCompiledMemoryStats, m);
  m.executable = c.executable;
  if (failed(cuda->PJRT_Executable_GetCompiledMemoryStats(&m), log)) return;
  fprintf(log, "ok %lld\n", (long long)m.peak_memory_in_bytes);
  ARGS(PJRT_Executable_Destroy, d);
  d.executable = c.executable;
  cuda->PJRT_Executable_Destroy(&d);
}

static PJRT_Error *compile(PJRT_Client_Compile_Args *a) {
  const char *card = getenv("GPU_CARD");
  if (!card || a->program->code_size < 60000) return cpu->PJRT_Client_Compile(a);
  pthread_mutex_lock(&lock);
  FILE *log = fopen(getenv("GPU_LOG"), "a");
  if (!log) stop("GPU_LOG can't be written");
  compile_for(card, a, log);
  fclose(log);
  pthread_mutex_unlock(&lock);
  PJRT_Program none = *a->program;
  none.format = "compiled for a GPU only", none.format_size = strlen(none.format);
  PJRT_Client_Compile_Args b = *a;
  b.program = &none;
  return cpu->PJRT_Client_Compile(&b);
}

// create leaves out the options that only CUDA has.
static PJRT_Error *create(PJRT_Client_Create_Args *a) {
  PJRT_Client_Create_Args b = *a;
  b.create_options = NULL, b.num_options = 0;
  PJRT_Error *error = cpu->PJRT_Client_Create(&b);
  a->client = b.client;
  return error;
}

const PJRT_Api *GetPjrtApi(void) {
  pthread_mutex_lock(&lock);
  if (!cpu) {
    cpu = load("GPU_CPU");
    memcpy(&this, cpu, cpu->struct_size < sizeof this ? cpu->struct_size : sizeof this);
    this.PJRT_Client_Compile = compile, this.PJRT_Client_Create = create;
  }
  pthread_mutex_unlock(&lock);
  return &this;
}
