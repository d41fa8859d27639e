/** Read-only lists of objects. */
export const objects = {
  'objects.name': '名称',
  'objects.state': '状态',
  'objects.why': '原因',
  'objects.created': '创建时间',
  'objects.not.ready': '未就绪',
  'objects.count': '{total} 个对象 · {bad} 个未就绪',
  'objects.none': '暂无内容',
  'objects.none.text': '使用下面的命令创建此类对象。',
} satisfies Record<keyof typeof import('../en/objects').objects, string>;
